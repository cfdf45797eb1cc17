import { UserError } from "../../contracts/user-error.js";
import { modelsAmong } from "./choose.js";
import { checkRevision, parseHubId } from "./id.js";
import { Repository } from "./repository.js";
import { hubSettings } from "./settings.js";

/** A model available in a hub repository. */
export interface HubOffer {
  /** Hub id of exactly this model: `owner/name/file.gguf`. */
  id: string;
  /** Its file in the repository; the first part of a split model. */
  file: string;
  parts: number;
  /** Total size of all parts, on disk and in memory. */
  bytes: number;
}

/**
 * Lists a repository's models without downloading any; smallest first.
 * @param name `owner/name`; a quantization or file after it is ignored
 * @throws UserError
 */
export async function hubOffers(
  name: string,
  { revision = "main", signal }: { revision?: string; signal?: AbortSignal } = {},
): Promise<{ repository: string; offers: HubOffer[] }> {
  const id = parseHubId(name);
  if (id === undefined) throw new UserError(`${name} is not a hub model (owner/name).`);
  checkRevision(revision);
  const { repository } = id;
  const settings = await hubSettings();
  if (settings.offline) {
    throw new UserError(`HF_HUB_OFFLINE is set, so the models of ${repository} cannot be listed.`);
  }
  const { files } = await Repository.open(settings, repository, revision, signal);
  const sizes = new Map(files.map(({ path, size }) => [path, size]));
  const offers = modelsAmong([...sizes.keys()]).map((set) => ({
    id: `${repository}/${set.files[0]}`,
    file: set.files[0] as string,
    parts: set.parts,
    bytes: set.files.reduce((sum, file) => sum + (sizes.get(file) ?? 0), 0),
  }));
  return { repository, offers: offers.sort((a, b) => a.bytes - b.bytes) };
}
