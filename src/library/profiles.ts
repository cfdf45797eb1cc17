import { readFile } from "node:fs/promises";
import type { LiveVector } from "../contracts/live.js";
import type { ProfileRequest, ProfileSettings, ProfileUse, StoredProfile } from "../contracts/profile.js";
import { UserError } from "../contracts/user-error.js";
import type { Dictionaries } from "./dictionaries.js";
import type { ModelIdentity } from "./identity.js";
import type { Lenses } from "./lenses.js";
import type { Probes } from "./probes.js";
import { CachedShelf, type NamedFile } from "./shelf.js";
import type { Vectors } from "./vectors.js";

/** The saved items that profiles name. */
export interface ProfileParts {
  vectors: Vectors;
  probes: Probes;
  dictionaries: Dictionaries;
  lenses: Lenses;
}

type Said = Omit<StoredProfile, "name" | "created" | "changed">;
type Model = NonNullable<StoredProfile["model"]>;

/**
 * Saved edits and readings by name, each a private JSON file. A profile records the hashes of the vectors, probes and
 * dictionaries that it names, so that a later change of one of them is noticed.
 */
export class Profiles extends CachedShelf<StoredProfile, Omit<StoredProfile, "name" | "changed">> {
  constructor(
    home: string,
    private readonly parts: ProfileParts,
  ) {
    super(home, "profile", "profiles", ".json");
  }

  /**
   * Saves a profile under a name, replacing any existing one.
   * @param model null for any model
   * @throws UserError if it is empty, or names a vector, probe or dictionary that does not exist
   */
  async put(name: string, request: ProfileRequest, model: ModelIdentity | null): Promise<StoredProfile> {
    const { tapline, description = "" } = request;
    const { interventions = [], watch, stop_when } = tapline;
    if (interventions.length === 0 && watch === undefined && stop_when === undefined) {
      throw new UserError("tapline: a profile needs interventions, watch or stop_when.");
    }
    const uses: ProfileUse[] = [];
    for (const { kind, name: used } of namesIn(tapline)) {
      uses.push({ kind, name: used, sha256: await this.#hash(kind, used) });
    }
    const said: Said = {
      description,
      tapline,
      model: model && { id: model.id, fingerprint: model.fingerprint },
      uses,
    };
    await this.write(name, Buffer.from(`${JSON.stringify(said, null, 2)}\n`));
    return this.get(name);
  }

  async get(name: string): Promise<StoredProfile> {
    const { created, ...said } = await this.content(name);
    return { name, ...said, changed: await this.#changes(name, said.uses), created };
  }

  protected async read(_: string, { path, created }: NamedFile) {
    return { ...(JSON.parse(await readFile(path, "utf8")) as Said), created };
  }

  /**
   * A profile that a model can run.
   * @throws UserError if it was saved for another model, or what it names has changed since
   */
  async fitting(name: string, model: ModelIdentity): Promise<StoredProfile> {
    const found = await this.get(name);
    if (!isFor(found.model, model)) {
      const { id, fingerprint } = found.model as Model;
      throw new UserError(
        `The profile ${name} was saved for ${id} (${fingerprint.slice(0, 16)}), not for ${model.id} ` +
          `(${model.fingerprint.slice(0, 16)}).`,
      );
    }
    const [changed] = found.changed;
    if (changed !== undefined) throw new UserError(changed);
    return found;
  }

  /** The profiles that a model can run, by name. */
  async allFor(model: ModelIdentity): Promise<StoredProfile[]> {
    return (await this.list()).filter((one) => isFor(one.model, model) && one.changed.length === 0);
  }

  async #changes(profile: string, uses: readonly ProfileUse[]): Promise<string[]> {
    const sentences: string[] = [];
    for (const { kind, name, sha256 } of uses) {
      const now = await this.#hash(kind, name).catch((error: unknown) => {
        if (error instanceof UserError) return null;
        throw error;
      });
      if (now === sha256) continue;
      sentences.push(
        now === null
          ? `The profile ${profile} needs the ${kind} ${name}, which no longer exists.`
          : `The ${kind} ${name} has changed since the profile ${profile} was saved (${sha256.slice(0, 16)} then, ` +
              `${now.slice(0, 16)} now); save the profile again to accept it.`,
      );
    }
    return sentences;
  }

  async #hash(kind: ProfileUse["kind"], name: string): Promise<string> {
    const { vectors, probes, dictionaries, lenses } = this.parts;
    const shelf = { vector: vectors, probe: probes, dictionary: dictionaries, lens: lenses }[kind];
    return shelf.hash(name);
  }
}

function isFor(saved: Model | null, model: ModelIdentity): boolean {
  return saved === null || saved.fingerprint === model.fingerprint;
}

/** The vectors, probes, dictionaries and lenses that settings name, each once, in the order of their first mention. */
function namesIn({ interventions = [], watch, stop_when }: ProfileSettings): Omit<ProfileUse, "sha256">[] {
  const found = new Map<string, Omit<ProfileUse, "sha256">>();
  const add = (kind: ProfileUse["kind"], name: string) => found.set(`${kind} ${name}`, { kind, name });
  for (const { vector, when } of interventions) {
    if (vector !== undefined) addVector(vector, add);
    if (when !== undefined) add("probe", when.probe);
  }
  for (const name of watch?.probes ?? []) add("probe", name);
  for (const name of watch?.projections ?? []) add("vector", name);
  for (const { dictionary } of watch?.features ?? []) add("dictionary", dictionary);
  for (const name of watch?.lenses ?? []) add("lens", name);
  if (stop_when !== undefined) add("probe", stop_when.probe);
  return [...found.values()];
}

function addVector(vector: LiveVector, add: (kind: ProfileUse["kind"], name: string) => void): void {
  if (typeof vector === "string") add("vector", vector);
  else if (typeof vector.feature[0] === "string") add("dictionary", vector.feature[0]);
}
