import { FormatError } from "../formats/format-error.js";
import { fromFile, readBlockCount } from "./gguf-header.js";
import { parseHubId } from "./hub/id.js";
import type { HubOptions } from "./hub/index.js";
import { modelHere } from "./resolve.js";

/**
 * Number of blocks of a model, from its file's header: nothing is loaded, and from the hub only the header is read.
 * @returns undefined if it is neither on this machine nor a hub id, or the header does not contain it
 * @throws UserError
 */
export async function blockCount(
  model: string,
  options: Pick<HubOptions, "revision" | "signal"> = {},
): Promise<number | undefined> {
  const here = await modelHere(model);
  try {
    if (here !== undefined) return (await fromFile(here.path, readBlockCount)) ?? undefined;
    const id = parseHubId(model);
    if (id === undefined) return undefined;
    const { readHubHead } = await import("./hub/index.js");
    return (await readHubHead(id, options, readBlockCount)) ?? undefined;
  } catch (error) {
    if (error instanceof FormatError) return undefined;
    throw error;
  }
}
