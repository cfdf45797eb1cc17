import { UserError } from "../../contracts/user-error.js";
import { modelsAmong } from "./choose.js";
import { checkRevision, parseHubId } from "./id.js";
import { Repository } from "./repository.js";
import { hubSettings } from "./settings.js";

/** A model that a repository of the hub has. */
export interface HubOffer {
  /** Hub id that brings exactly this model: `owner/name/file.gguf`. */
  id: string;
  /** Its file in the repository; the first part of a split model. */
  file: string;
  parts: number;
  /** Of all parts, as they are downloaded and as they lie in memory. */
  bytes: number;
}

/**
 * What a repository has, without bringing any of it; the smallest first.
 * @param name `owner/name`; a quantisation or a file behind it does not matter
 * @throws UserError with one sentence
 */
export async function hubOffers(
  name: string,
  { revision = "main", signal }: { revision?: string; signal?: AbortSignal } = {},
): Promise<{ repository: string; offers: HubOffer[] }> {
  const id = parseHubId(name);
  if (id === undefined) throw new UserError(`${name} is no model of the hub: those are owner/name.`);
  checkRevision(revision);
  const { repository } = id;
  const settings = await hubSettings();
  if (settings.offline) {
    throw new UserError(`HF_HUB_OFFLINE is set: what ${repository} has is not asked for.`);
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
