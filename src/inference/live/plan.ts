import { interventionOf, kindsThat } from "../../contracts/interventions.js";
import type { LiveCondition, LiveIntervention, LiveRequest, LiveVector } from "../../contracts/live.js";
import { type ChangedPoint, pointField } from "../../contracts/names.js";
import { reversedBounds, reversedRange } from "../../contracts/reversed-range.js";
import { editOf } from "../../library/index.js";
import type { Edit, FeaturePlace } from "../../native/edit.js";
import type { LivePlan } from "../../native/live.js";
import { listed } from "../../text/words.js";
import { fieldRefusal, refusal } from "../check-body.js";
import { checkHeads, checkLayer, inField } from "./fields.js";
import type { LiveLibrary } from "./library.js";
import { ProbeList, watchOf } from "./watch.js";

/**
 * Resolves a request's `tapline` object to numbers: looks up vectors and probes, and expands layers.
 * @param chat whether the request is a chat, whose template marks the end of thinking
 * @throws HttpError 400 that names the field
 */
export async function livePlan(request: LiveRequest, library: LiveLibrary, chat: boolean): Promise<LivePlan> {
  checkParts(request, chat);
  const probes = new ProbeList(library);
  const conditions: NonNullable<LivePlan["conditions"]>[number][] = [];
  const condition = async (path: string, given: LiveCondition) => {
    const { probe, above, below, for: tokens = 1 } = given;
    if ((above === undefined) === (below === undefined)) {
      throw fieldRefusal(path, "exactly one of above and below is required.");
    }
    conditions.push({
      probe: await probes.index(`${path}.probe`, probe),
      bound: (above ?? below) as number,
      above: above !== undefined,
      tokens,
    });
    return conditions.length - 1;
  };

  const edits: Edit[] = [];
  const gates: number[] = [];
  const labels: string[] = [];
  for (const [index, written] of (request.interventions ?? []).entries()) {
    const path = `tapline.interventions[${index}]`;
    checkWritten(path, written);
    const gate = written.when === undefined ? -1 : await condition(`${path}.when`, written.when);
    for (const layer of await layersOf(path, written, library)) {
      const vector =
        written.vector === undefined
          ? undefined
          : await vectorOf(`${path}.vector`, written.vector, layer, library, written.point);
      const strength = written.strength ?? 1;
      edits.push(editOf({ ...written, strength }, layer, vector?.vector, vector?.feature));
      gates.push(gate);
      labels.push(
        JSON.stringify({
          kind: written.kind,
          layer,
          ...pointField(written.point),
          ...(written.heads && { heads: written.heads }),
          ...(vector && { vector: written.vector, sha256: vector.sha256 }),
          strength,
          ...(written.min !== undefined && { min: written.min }),
          ...(written.max !== undefined && { max: written.max }),
          ...(vector && !hasNoUnit(written) && { strength_unit: written.strength_unit ?? "unit" }),
          positions: written.positions ?? "all",
        }),
      );
    }
  }
  const stop = request.stop_when === undefined ? -1 : await condition("tapline.stop_when", request.stop_when);
  const watch = await watchOf(request, library, probes);
  const pair = request.pair === true;
  return { edits, gates, labels, conditions, stop, probes: probes.all, pair, ...(watch && { watch }) };
}

/** Checks that ranges are not reversed, and that thinking and answer are used only in chats. */
function checkParts({ interventions = [], watch }: LiveRequest, chat: boolean): void {
  const parts = [
    ...interventions.map(({ positions }, index) => ({
      path: `tapline.interventions[${index}].positions`,
      positions,
    })),
    { path: "tapline.watch.positions", positions: watch?.positions },
  ];
  for (const { path, positions } of parts) {
    const reversed = Array.isArray(positions) ? reversedRange(positions) : null;
    if (reversed !== null) {
      const range = `${path}[${reversed.index}]`;
      throw fieldRefusal(range, `${reversed.sentence}`);
    }
    if (chat || (positions !== "thinking" && positions !== "answer")) continue;
    throw fieldRefusal(path, `${positions} is available only in chats.`);
  }
}

/** An intervention as written, whose vector may also be given with the request. */
export type WrittenIntervention = Omit<LiveIntervention, "vector" | "positions" | "when"> & {
  vector?: unknown;
};

/** Checks rules that the schema cannot express. @throws HttpError 400 that names the field */
export function checkWritten(path: string, written: WrittenIntervention): void {
  const { kind, vector, strength, strength_unit: unit, min, max, layer, layers } = written;
  const { needs, units, bounded, neutral } = interventionOf(kind);
  if ((needs !== undefined) !== (vector !== undefined)) {
    throw refusal(
      `${path}.vector`,
      vector === undefined
        ? `${path}.vector is required for ${kind}.`
        : `${path}.vector: ${kind} takes no vector.`,
    );
  }
  if (layer !== undefined && layers !== undefined) {
    throw refusal(`${path}.layers`, `${path}: layer and layers are mutually exclusive.`);
  }
  checkHeads(path, written);
  // The default of 1 would have no effect.
  if (neutral === 1 && strength === undefined) {
    throw refusal(`${path}.strength`, `${path}.strength is required for ${kind}.`);
  }
  if (unit !== undefined && !units) {
    const those = listed(kindsThat((one) => one.live && one.units));
    throw fieldRefusal(`${path}.strength_unit`, `not supported for ${kind}, only for ${those}.`);
  }
  if (unit !== undefined && hasNoUnit(written)) {
    throw refusal(
      `${path}.strength_unit`,
      `${path}.strength_unit is not supported when clamping a feature: min and max bound its activation.`,
    );
  }
  if (!bounded && (min !== undefined || max !== undefined)) {
    const those = listed(kindsThat((one) => one.live && one.bounded));
    throw refusal(`${path}.min`, `${path}: min and max are supported for ${those}, not for ${kind}.`);
  }
  if (bounded && strength !== undefined && !(strength >= 0 && strength <= 1)) {
    throw fieldRefusal(
      `${path}.strength`,
      `must be from 0 to 1 for ${kind} (the share of the correction), got ${strength}.`,
    );
  }
  if (bounded && min === undefined && max === undefined) {
    throw refusal(`${path}.min`, `${path}: a ${kind} needs min or max.`);
  }
  if (reversedBounds(min, max)) {
    throw refusal(`${path}.min`, `${path}: min (${min}) must not exceed max (${max}).`);
  }
}

/** Donors are patched in unscaled; clamped features are bounded by their activation. */
function hasNoUnit({ kind, vector }: WrittenIntervention): boolean {
  const { needs, bounded } = interventionOf(kind);
  return needs === "donor" || (bounded === true && isFeature(vector));
}

function isFeature(vector: unknown): vector is Exclude<LiveVector, string> {
  return typeof vector === "object" && vector !== null && "feature" in vector;
}

/** The layers of an intervention, by default those of its stored vector. @throws HttpError 400 */
export async function layersOf(
  path: string,
  { layer, layers, vector }: WrittenIntervention,
  library: LiveLibrary,
): Promise<number[]> {
  const { model } = library;
  const stored = typeof vector === "string" || isFeature(vector);
  const own = () => (stored ? ownLayers(`${path}.vector`, vector, library) : []);
  const wanted = layer !== undefined ? [layer] : (layers ?? (await own()));
  if (wanted.length === 0) throw refusal(`${path}.layer`, `${path}: layer or layers is required.`);
  for (const one of wanted)
    checkLayer(`${path}.${layer === undefined ? "layers" : "layer"}`, one, model.nLayer);
  return wanted;
}

/** A dictionary's name and a feature's index. @throws HttpError 400 */
function featureOf(path: string, { feature }: Exclude<LiveVector, string>): [string, number] {
  const [name, index] = feature;
  if (typeof name === "string" && typeof index === "number") return [name, index];
  throw refusal(path, `${path}.feature must be [dictionary, index], in this order.`);
}

/** The layers of a vector. */
function ownLayers(path: string, vector: LiveVector, library: LiveLibrary): Promise<number[]> {
  if (typeof vector === "string") return inField(path, library.vectors.layers(vector));
  const [name] = featureOf(path, vector);
  return inField(
    path,
    library.dictionaries.get(name).then(({ layer }) => [layer]),
  );
}

/** A stored vector for a layer, or a feature's decoder vector. @throws HttpError 400 */
export function vectorOf(
  path: string,
  vector: LiveVector,
  layer: number,
  { vectors, dictionaries, model }: LiveLibrary,
  point?: ChangedPoint,
): Promise<{ vector: Float32Array; sha256: string; feature?: FeaturePlace }> {
  if (typeof vector === "string") return inField(path, vectors.layer(vector, layer, model));
  return inField(path, dictionaries.direction(...featureOf(path, vector), layer, model, point));
}
