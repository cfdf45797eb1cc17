import { ChatRequest, CompletionRequest } from "../contracts/chat.js";
import { InvalidInput, UserError, validate } from "../contracts/index.js";
import { ProbeRequest, VectorRequest } from "../contracts/library.js";
import type { LiveRequest } from "../contracts/live.js";
import { LivePost, liveKinds, RandomVector } from "../contracts/recipe.js";

/** A live step's request to a serving model. */
export type LiveStep =
  | { vector: VectorRequest }
  | { probe: ProbeRequest }
  | { random: RandomVector }
  | LivePost;

/** The vectors and probes that earlier steps made, by name. */
export type Made = Map<string, "vector" | "probe">;

/**
 * Checks a live step against its request's schema, and that earlier steps made the items that it names.
 * @param made items made by earlier steps; this step's item is added
 * @throws InvalidInput, UserError
 */
export function checkLive(live: object, made: Made): LiveStep {
  const kinds = liveKinds.filter((kind) => kind in live);
  if (kinds.length !== 1) {
    throw new UserError(
      `live must have exactly one of ${liveKinds.join(", ")}, got ${kinds.join(" and ") || "none"}.`,
    );
  }
  const [kind] = kinds as [(typeof liveKinds)[number]];
  if (kind === "post") return checkPost(validate(LivePost, live), made);
  const extra = Object.keys(live).find((name) => name !== kind);
  if (extra !== undefined) throw new UserError(`live.${extra} cannot be combined with ${kind}.`);
  const given = (live as Record<string, unknown>)[kind];
  if (kind === "random") {
    const random = validate(RandomVector, given);
    if (made.get(random.like) !== "vector") throw notMade("vector", random.like);
    return { random: added(random, "vector", made) };
  }
  return kind === "vector"
    ? { vector: added(validate(VectorRequest, given), "vector", made) }
    : { probe: added(validate(ProbeRequest, given), "probe", made) };
}

/** The bodies of a step's requests, in order. */
export function bodiesOf({ body, each = [{}] }: LivePost): Record<string, unknown>[] {
  return each.map((own) => ({ ...body, ...own }));
}

function added<T extends { name: string }>(request: T, kind: "vector" | "probe", made: Made): T {
  if (made.has(request.name)) throw new UserError(`${request.name} was already made by an earlier step.`);
  made.set(request.name, kind);
  return request;
}

function checkPost(step: LivePost, made: Made): LivePost {
  const schema = step.post === "/v1/completions" ? CompletionRequest : ChatRequest;
  for (const [index, body] of bodiesOf(step).entries()) {
    const path = step.each === undefined ? "body" : `each[${index}]`;
    if ("model" in body)
      throw new UserError(`${path} must not set model; a recipe lists its models in models.`);
    if ("stream" in body)
      throw new UserError(`${path} must not set stream; a recipe reads complete answers.`);
    const unknown = Object.keys(body).find((name) => !(name in schema.properties));
    if (unknown !== undefined) throw new UserError(`${path}: ${unknown} is not a field of ${step.post}.`);
    try {
      const { tapline } = validate(schema, body) as { tapline?: LiveRequest };
      if (tapline !== undefined) checkNames(tapline, made);
    } catch (error) {
      if (!(error instanceof InvalidInput || error instanceof UserError)) throw error;
      throw new UserError(`${path}: ${error.message}`);
    }
  }
  return step;
}

/** A recipe must make every item that it names, so that it runs on a server with an empty library. */
function checkNames({ interventions = [], watch = {}, stop_when: stop }: LiveRequest, made: Made): void {
  const vectors = [...interventions.map(({ vector }) => vector), ...(watch.projections ?? [])];
  const probes = [stop?.probe, ...interventions.map(({ when }) => when?.probe), ...(watch.probes ?? [])];
  for (const vector of vectors) {
    if (typeof vector === "object") throw new UserError("recipes cannot include a dictionary for a feature.");
    if (vector !== undefined && made.get(vector) !== "vector") throw notMade("vector", vector);
  }
  for (const probe of probes) {
    if (probe !== undefined && made.get(probe) !== "probe") throw notMade("probe", probe);
  }
}

function notMade(kind: string, name: string): UserError {
  return new UserError(`no earlier step makes a ${kind} ${name}.`);
}
