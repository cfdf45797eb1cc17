import { checkSubmission, UserError } from "../contracts/index.js";
import type { Contrast, RecipeStep } from "../contracts/recipe.js";
import { checkLive, type Made } from "./live.js";
import { replaced } from "./placeholders.js";

/** What the steps before one leave to it. */
export interface Before {
  /** On the serving model's shelves. */
  live: Made;
  /** In the Lab's library. */
  kept: Map<string, "dictionary" | "probe">;
  steps: Map<string, RecipeStep>;
}

/** What a step of an operation is kept as. */
export const keptKinds: Readonly<Record<string, "dictionary" | "probe">> = {
  sae: "dictionary",
  probe: "probe",
};

/** Checks a step by the schema of its request, and that what it names was made before it. @throws InvalidInput, UserError */
export function checkStep(step: RecipeStep, before: Before): void {
  const { request, live, contrast, variant, keep } = step;
  const kinds = Object.entries({ request, live, contrast }).filter(([, each]) => each !== undefined);
  if (kinds.length !== 1) {
    const has = kinds.map(([kind]) => kind).join(" and ") || "none";
    throw new UserError(`has one of request, live and contrast, got ${has}.`);
  }
  if (request === undefined && (variant ?? keep) !== undefined) {
    throw new UserError(`${variant === undefined ? "keep" : "variant"} is of a request.`);
  }
  if (live !== undefined) checkLive(live, before.live);
  if (contrast !== undefined) checkContrast(contrast, before);
  if (request !== undefined) checkRequest(request, before);
  if (request !== undefined && keep !== undefined) checkKeep(keep, request, before);
}

/** The forms of the model that a step is about. */
export function variantsOf({ variant, request }: RecipeStep): string[] {
  const found = variant === undefined ? [] : [variant];
  replaced(request, "variant", (name) => found.push(name));
  return found;
}

/** Whether a step picks a feature, which later ones may name. */
function picks({ contrast }: RecipeStep): boolean {
  return contrast !== undefined && contrast.feature === undefined;
}

function checkRequest(request: NonNullable<RecipeStep["request"]>, before: Before): void {
  if ("model" in request || "revision" in request || "other_revision" in request) {
    throw new UserError("names a model; a recipe names it in models, for all steps.");
  }
  const { other } = request as { other?: unknown };
  if (typeof other === "string") {
    throw new UserError(`other is {"variant": NAME}, a form of the recipe's model, not ${other}.`);
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

/** A recipe brings what it names: a Lab with an empty library must be able to run it. */
function checkNames(
  { dictionary, probe, vector, feature }: { [field: string]: unknown },
  { kept }: Before,
): void {
  if (vector !== undefined) throw new UserError("names a vector, which no request to a Lab keeps.");
  for (const [kind, name] of [
    ["dictionary", dictionary],
    ["dictionary", Array.isArray(feature) ? feature[0] : undefined],
    ["probe", probe],
  ] as const) {
    if (name !== undefined && kept.get(name as string) !== kind) {
      throw new UserError(`no earlier step keeps a ${kind} ${name}.`);
    }
  }
}

function checkKeep(
  name: string,
  { operation, ...settings }: NonNullable<RecipeStep["request"]>,
  { kept }: Before,
): void {
  const kind = keptKinds[operation];
  if (kind === undefined) throw new UserError(`keep is of sae and probe; ${operation} trains nothing.`);
  const { layers } = settings as { layers?: unknown[] };
  if (layers?.length !== 1) {
    throw new UserError(`keep is of one layer, named in layers; there are ${layers?.length ?? "none"}.`);
  }
  if (kept.has(name)) throw new UserError(`${name} was kept by an earlier step already.`);
  kept.set(name, kind);
}

function checkContrast({ step, feature }: Contrast, { steps }: Before): void {
  if (steps.get(step)?.request?.operation !== "features") {
    throw new UserError(`reads ${step}, which is no earlier step of the operation features.`);
  }
  if (typeof feature === "object" && !picks(steps.get(feature.picked) ?? ({} as RecipeStep))) {
    throw new UserError(`no earlier step ${feature.picked} picks a feature.`);
  }
}
