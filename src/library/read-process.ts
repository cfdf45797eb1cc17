import type { StoredDictionary, StoredLens } from "../contracts/library.js";
import { UserError } from "../contracts/user-error.js";
import { resolveHubPlace } from "../models/hub/index.js";
import { Dictionaries, type DictionaryClaims } from "./index.js";
import type { FromHub } from "./layout-files.js";
import { Lenses } from "./lenses.js";

/** A task for this process. */
export interface LibraryTask {
  kind: "dictionary" | "lens";
  /** Folder of the library. */
  home: string;
  name: string;
  /** A folder or a weights file, local or on the hub. */
  place: string;
  /** For a dictionary. */
  claims?: DictionaryClaims;
  revision: string | undefined;
}

/** The result: the saved object, or the reason of a refusal. Other faults end the process. */
export type Taken = { stored: StoredDictionary | StoredLens } | { refused: string };

// If the service ends or the client disconnects, this process stops, ending downloads cleanly.
const stop = new AbortController();
process.on("disconnect", () => stop.abort());
// The service handles a closed terminal and Ctrl-C.
for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, () => {});

async function take({ kind, home, name, place, claims, revision }: LibraryTask): Promise<Taken> {
  const { signal } = stop;
  const fromHub: FromHub = (asked, choose) =>
    resolveHubPlace(asked, choose, { signal, ...(revision !== undefined && { revision }) });
  try {
    const stored =
      kind === "lens"
        ? await new Lenses(home).add(name, place, fromHub)
        : await new Dictionaries(home).add(name, place, claims, fromHub);
    return { stored };
  } catch (error) {
    if (error instanceof UserError) return { refused: error.message };
    if (signal.aborted) return { refused: "The client disconnected." };
    throw error;
  }
}

process.once("message", async (task: LibraryTask) => {
  const answer = await take(task);
  if (process.connected) process.send?.(answer, undefined, undefined, () => process.disconnect());
});
