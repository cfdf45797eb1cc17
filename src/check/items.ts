import { textEdits } from "../card/arms.js";
import type {
  Budget,
  BudgetFeature,
  BudgetProbe,
  BudgetProfile,
  BudgetVector,
  CheckResult,
} from "../contracts/budget.js";
import type { ForwardEdit } from "../contracts/forward.js";
import { UserError } from "../contracts/user-error.js";
import { canonicalHash } from "../formats/canonical-json.js";
import { bytesOf } from "../formats/float.js";
import type { Dictionaries, ModelIdentity, Probes, Profiles, Vectors } from "../library/index.js";

/** The saved items that budgets name. */
export interface SavedItems {
  vectors: Pick<Vectors, "get" | "names" | "layer" | "layers">;
  probes: Pick<Probes, "get" | "names" | "ofBlockOutput">;
  dictionaries: Pick<Dictionaries, "get" | "open">;
  profiles: Pick<Profiles, "get" | "names">;
}

export type BudgetItems = Pick<Budget, "probes" | "vectors" | "features" | "profiles">;

/** Any model with this one's fingerprint: a budget compares a model with others, for which its items were not made. */
function ownerOf({ model, n_embd }: { model: { id: string; fingerprint: string } | null; n_embd: number }) {
  const { id = "", fingerprint = "" } = model ?? {};
  return { id, fingerprint, nEmbd: n_embd, nLayer: 256 } satisfies ModelIdentity;
}

const inBase64 = (values: Float32Array) => Buffer.from(bytesOf(values)).toString("base64");

/** @throws UserError if there is none of that name, or it does not read block outputs */
export async function probeItem({ probes }: SavedItems, name: string): Promise<BudgetProbe> {
  const { layer, weight, bias, sha256 } = await probes.ofBlockOutput(name, ownerOf(await probes.get(name)));
  return { name, sha256, layer, weight: inBase64(Float32Array.from(weight)), bias };
}

/** A vector's directions, one per layer. @throws UserError if there is none of that name */
export async function vectorItems({ vectors }: SavedItems, name: string): Promise<BudgetVector[]> {
  const owner = ownerOf(await vectors.get(name));
  const found: BudgetVector[] = [];
  for (const layer of await vectors.layers(name)) {
    const { vector, sha256 } = await vectors.layer(name, layer, owner);
    found.push({ name, sha256, layer, values: inBase64(vector) });
  }
  return found;
}

/** @throws UserError if there is no such dictionary or feature, or it does not read block outputs */
export async function featureItem(
  { dictionaries }: SavedItems,
  dictionary: string,
  feature: number,
): Promise<BudgetFeature> {
  const { sha256, layer, features, point } = await dictionaries.get(dictionary);
  if (feature >= features) {
    throw new UserError(`The dictionary ${dictionary} has ${features} features; got feature ${feature}.`);
  }
  if (point !== undefined && point !== "block_out") {
    throw new UserError(`The dictionary ${dictionary} reads ${point}; budgets read block outputs only.`);
  }
  return { dictionary, sha256, layer, feature };
}

/** A profile's interventions on prompts, with the vectors that they name. @throws UserError */
export async function profileItem(saved: SavedItems, name: string): Promise<BudgetProfile> {
  const { tapline } = await saved.profiles.get(name);
  const edits: ForwardEdit[] = [];
  for (const edit of textEdits(tapline.interventions ?? [])) {
    const { vector, layer, layers, ...rest } = edit;
    if (typeof vector !== "string") {
      edits.push(edit);
      continue;
    }
    const rows = await vectorItems(saved, vector);
    for (const own of layer !== undefined ? [layer] : (layers ?? rows.map((row) => row.layer))) {
      const row = rows.find((one) => one.layer === own);
      if (row === undefined) throw new UserError(`The vector ${vector} has no layer ${own}.`);
      edits.push({ ...rest, layer: own, vector: { base64: row.values } });
    }
  }
  const sha256 = canonicalHash(edits);
  return { name, sha256, edits };
}

/** An item that is saved with other numbers than the budget's. */
export type ChangedItem = CheckResult["changed"][number];

/**
 * A budget's items as they are saved now; those that are not saved here stay the budget's.
 * @throws UserError if a dictionary is missing, which a budget does not contain
 */
export async function currentItems(
  saved: SavedItems,
  budget: BudgetItems,
): Promise<{ items: BudgetItems; changed: ChangedItem[] }> {
  const changed = new Map<string, ChangedItem>();
  const kept = <T extends { sha256: string }>(kind: ChangedItem["kind"], name: string, old: T, now: T): T => {
    if (old.sha256 !== now.sha256) changed.set(`${kind} ${name}`, { kind, name });
    return now;
  };
  const here = {
    probes: new Set(await saved.probes.names()),
    vectors: new Set(await saved.vectors.names()),
    profiles: new Set(await saved.profiles.names()),
  };
  const probes: BudgetProbe[] = [];
  for (const old of budget.probes) {
    const now = here.probes.has(old.name) ? await probeItem(saved, old.name) : old;
    probes.push(kept("probe", old.name, old, now));
  }
  const vectors: BudgetVector[] = [];
  for (const old of budget.vectors) {
    const rows = here.vectors.has(old.name) ? await vectorItems(saved, old.name) : [old];
    const now = rows.find(({ layer }) => layer === old.layer);
    if (now === undefined) throw new UserError(`The vector ${old.name} no longer has layer ${old.layer}.`);
    vectors.push(kept("vector", old.name, old, now));
  }
  const features: BudgetFeature[] = [];
  for (const old of budget.features) {
    features.push(
      kept("dictionary", old.dictionary, old, await featureItem(saved, old.dictionary, old.feature)),
    );
  }
  const profiles: BudgetProfile[] = [];
  for (const old of budget.profiles) {
    const now = here.profiles.has(old.name) ? await profileItem(saved, old.name) : old;
    profiles.push(kept("profile", old.name, old, now));
  }
  return { items: { probes, vectors, features, profiles }, changed: [...changed.values()] };
}
