import { stat } from "node:fs/promises";
import { UserError } from "../contracts/user-error.js";
import { dictionaryFiles } from "../formats/dictionaries/index.js";
import { FormatError } from "../formats/format-error.js";
import { parseHubPlace } from "../models/hub/id.js";
import { resolveHubPlace } from "../models/hub/index.js";
import type { Models } from "./models.js";

/** Repositories of kinds that the Lab refuses before it downloads anything. */
const refused = /^google\/gemma-scope-(?:[^/]*-)?(?:att|transcoders)(?=$|\/|-)/;

/**
 * Downloads a published dictionary into the hub's cache with progress, from which the Lab then reads it. Does nothing for a
 * local path.
 * @throws HttpError
 */
export async function downloadDictionary(
  models: Pick<Models, "bring">,
  place: string,
  revision: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (parseHubPlace(place) === undefined || refused.test(place)) return;
  if ((await stat(place).catch(() => undefined)) !== undefined) return;
  const choose = (paths: readonly string[], at: string) => {
    try {
      return dictionaryFiles(paths, at);
    } catch (error) {
      throw error instanceof FormatError ? new UserError(error.message) : error;
    }
  };
  const options = revision === undefined ? {} : { revision };
  await models.bring(
    place,
    (fetching) => resolveHubPlace(place, choose, { ...options, ...fetching }),
    signal,
  );
}
