import { ports } from "../contracts/index.js";
import { UserError } from "../contracts/user-error.js";
import { FormatError } from "../formats/format-error.js";
import { type Endpoint, HttpError, within } from "../http/index.js";
import { type Kept, keptEndpoints } from "./endpoints.js";
import { type ModelIdentity, modelFingerprint, Probes, Vectors } from "./index.js";
import { readGgufHeader } from "../models/gguf-header.js";
import { modelHere } from "../models/resolve.js";
import { LargeThings, largeEndpoints } from "./read-apart.js";

/** What the library's endpoints answer from. */
export interface LabLibrary {
  kept: Kept;
  large: LargeThings;
}

export function openLibrary(home: string): LabLibrary {
  const modelNamed: Kept["modelNamed"] = async (named) =>
    named === undefined ? undefined : identityOf(named);
  return {
    kept: { vectors: new Vectors(home), probes: new Probes(home), modelNamed },
    large: new LargeThings(home),
  };
}

/** The user's library on the Lab's port: what is kept, without a model that could make something new. */
export const libraryEndpoints: readonly Endpoint<LabLibrary>[] = [
  ...within(keptEndpoints, ({ kept }: LabLibrary) => kept),
  ...within(largeEndpoints, ({ large }: LabLibrary) => large),
  ...["vector", "probe"].map(
    (noun): Endpoint<LabLibrary> => ({
      at: `POST /lab/${noun}s`,
      unlisted: "a refusal that says where one is made",
      answer() {
        throw new HttpError(
          405,
          `A ${noun} is made from texts where a model is resident: POST /lab/${noun}s to tapline serve (port ` +
            `${ports.inference}); the Lab keeps files: PUT /lab/${noun}s/NAME.`,
          { headers: { Allow: "GET" } },
        );
      },
    }),
  ),
];

/**
 * A model on this machine as stored things know it.
 * @throws UserError where there is none of that name, or its file does not say its sizes
 */
async function identityOf(named: string): Promise<ModelIdentity> {
  const found = await modelHere(named);
  if (found === undefined) {
    throw new UserError(`model: there is no model ${named.slice(0, 200)} on this machine; give its file.`);
  }
  const { blocks, hidden } = await readGgufHeader(found.path).catch((error) => {
    throw error instanceof FormatError ? new UserError(`model: ${named} is damaged.`) : error;
  });
  if (blocks === null || hidden === null) {
    throw new UserError(`model: the file of ${named} does not say how many blocks it has, and how wide.`);
  }
  return { id: named, fingerprint: await modelFingerprint(found.path), nEmbd: hidden, nLayer: blocks };
}
