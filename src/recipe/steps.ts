import { checkSubmission, UserError } from "../contracts/index.js";
import type { Contrast, RecipeQuants, RecipeStep } from "../contracts/recipe.js";
import { checkLive, type Made } from "./live.js";
import { replaced } from "./placeholders.js";

/** What earlier steps provide. */
export interface Before {
  /** Saved on the serving model's server. */
  live: Made;
  /** Saved in the Lab's library. */
  kept: Map<string, "dictionary" | "probe">;
  steps: Map<string, RecipeStep>;
}

/** The kind of item that an operation's step saves. */
export const savedKinds: Readonly<Record<string, "dictionary" | "probe">> = {
  sae: "dictionary",
  probe: "probe",
};

/** Checks a step against its request's schema, and that earlier steps made the items that it names. @throws InvalidInput, UserError */
export function checkStep(step: RecipeStep, before: Before): void {
  const { request, live, contrast, quants, variant, keep } = step;
  const kinds = Object.entries({ request, live, contrast, quants }).filter(([, each]) => each !== undefined);
  if (kinds.length !== 1) {
    const has = kinds.map(([kind]) => kind).join(" and ") || "none";
    throw new UserError(`must have exactly one of request, live, contrast and quants, got ${has}.`);
  }
  if (request === undefined && (variant ?? keep) !== undefined) {
    throw new UserError(`${variant === undefined ? "keep" : "variant"} requires request.`);
  }
  if (live !== undefined) checkLive(live, before.live);
  if (contrast !== undefined) checkContrast(contrast, before);
  if (quants !== undefined) checkQuants(quants, before);
  if (request !== undefined) checkRequest(request, before);
  if (request !== undefined && keep !== undefined) checkKeep(keep, request, before);
}

/** The names under which a step's items are saved: of one layer its own, of several layers a set. */
export function keptNames(keep: string, layers: readonly number[]): string[] {
  return layers.length === 1 ? [keep] : layers.map((layer) => `${keep}-${layer}`);
}

/** The variants of the model that a step uses. */
export function variantsOf({ variant, request }: RecipeStep): string[] {
  const found = variant === undefined ? [] : [variant];
  replaced(request, "variant", (name) => found.push(name));
  return found;
}

/** Whether a step picks a feature for later steps. */
function picks({ contrast }: RecipeStep): boolean {
  return contrast !== undefined && contrast.feature === undefined;
}

function checkRequest(request: NonNullable<RecipeStep["request"]>, before: Before): void {
  if ("model" in request || "revision" in request || "other_revision" in request) {
    throw new UserError("must not name a model; a recipe lists its models in models, for all steps.");
  }
  const { other } = request as { other?: unknown };
  if (typeof other === "string") {
    throw new UserError(`other must be {"variant": NAME}, a variant of the recipe's model, got ${other}.`);
  }
  const known = replaced(request, "picked", (name) => {
    if (!picks(before.steps.get(name) ?? ({} as RecipeStep))) {
      throw new UserError(`no earlier step ${name} picks a feature.`);
    }
    return 0;
  });
  const submitted = replaced(known, "variant", () => "demo") as Record<string, unknown>;
  checkSubmission({ model: "demo", ...submitted });
  checkNames(submitted, before);
}

/** A recipe must make every item that it names, so that it runs in a Lab with an empty library. */
function checkNames(
  { dictionary, probe, vector, feature, transcoders }: { [field: string]: unknown },
  { kept }: Before,
): void {
  const isOfSet = (name: string) =>
    name === transcoders || (name.startsWith(`${transcoders}-`) && /-\d{1,3}$/.test(name));
  if (transcoders !== undefined && ![...kept.keys()].some(isOfSet))
    throw new UserError(`no earlier step saves transcoders ${transcoders}.`);
  if (vector !== undefined) throw new UserError("must not name a vector: no Lab request makes one.");
  for (const [kind, name] of [
    ["dictionary", dictionary],
    ["dictionary", Array.isArray(feature) ? feature[0] : undefined],
    ["probe", probe],
  ] as const) {
    if (name !== undefined && kept.get(name as string) !== kind) {
      throw new UserError(`no earlier step saves a ${kind} ${name}.`);
    }
  }
}

function checkKeep(
  name: string,
  { operation, ...settings }: NonNullable<RecipeStep["request"]>,
  { kept }: Before,
): void {
  const kind = savedKinds[operation];
  if (kind === undefined) throw new UserError(`keep applies only to sae and probe, not to ${operation}.`);
  const { layers = [] } = settings as { layers?: number[] };
  if (layers.length === 0 || (kind === "probe" && layers.length > 1)) {
    const wanted = kind === "probe" ? "exactly" : "at least";
    throw new UserError(`keep requires ${wanted} one entry in layers, got ${layers.length || "none"}.`);
  }
  for (const one of keptNames(name, layers)) {
    if (kept.has(one)) throw new UserError(`${one} was already saved by an earlier step.`);
    kept.set(one, kind);
  }
}

/** Lists of texts have been filled in. */
function checkQuants(quants: RecipeQuants, { kept }: Before): void {
  const { make = [], round = [], texts, dictionary, control } = quants;
  const { length } = texts as string[];
  if (length < 2) throw new UserError(`texts: at least 2 are needed, got ${length}.`);
  if (make.length + round.length === 0) throw new UserError("needs forms: make or round.");
  for (const { bits, group, format } of round) {
    if ((bits === undefined) === (format === undefined)) {
      throw new UserError("round: each entry must have exactly one of bits and format.");
    }
    if (group !== undefined && bits === undefined) throw new UserError("round: group requires bits.");
  }
  if (control !== undefined && dictionary === undefined) throw new UserError("control requires dictionary.");
  for (const name of [dictionary, control]) {
    if (name !== undefined && kept.get(name) !== "dictionary") {
      throw new UserError(`no earlier step saves a dictionary ${name}.`);
    }
  }
}

function checkContrast({ step, feature }: Contrast, { steps }: Before): void {
  if (steps.get(step)?.request?.operation !== "features") {
    throw new UserError(`reads ${step}, which is not an earlier features step.`);
  }
  if (typeof feature === "object" && !picks(steps.get(feature.picked) ?? ({} as RecipeStep))) {
    throw new UserError(`no earlier step ${feature.picked} picks a feature.`);
  }
}
