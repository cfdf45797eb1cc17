import type { LiveRequest, LiveWatch } from "../../contracts/live.js";
import { pointField } from "../../contracts/names.js";
import type { LivePlan } from "../../native/live.js";
import { streamPoints } from "../../native/points.js";
import { fieldRefusal, refusal } from "../check-body.js";
import { checkHeads, checkLayer, inField } from "./fields.js";
import type { LiveLibrary } from "./library.js";

type Watch = NonNullable<LivePlan["watch"]>;

const path = "tapline.watch";

/** The readings that a request asks for, with probes, vectors, dictionaries and lenses looked up. @throws HttpError 400 */
export async function watchOf(
  { watch }: LiveRequest,
  library: LiveLibrary,
  probes: ProbeList,
): Promise<Watch | undefined> {
  if (watch === undefined) return undefined;
  const { layers = [], positions = "generated", norms, lens, heads, probes: scored = [] } = watch;
  for (const layer of layers) checkLayer(`${path}.layers`, layer, library.model.nLayer);
  checkWatch(watch);
  for (const name of scored) await probes.index(`${path}.probes`, name);
  const dictionaries = await dictionariesOf(watch, library);
  const lenses = await lensesOf(watch, library);
  return {
    ...{ layers, positions, norms: norms === true },
    ...pointField(watch.point),
    ...(heads && { heads }),
    ...(lens !== undefined && { lensTop: lens }),
    probes: scored.length > 0,
    projections: await projectionsOf(watch, library),
    ...(dictionaries.length > 0 && { dictionaries }),
    ...(lenses.length > 0 && { lenses }),
  };
}

/** Checks rules that the schema cannot express. @throws HttpError 400 that names the field */
function checkWatch(watch: LiveWatch): void {
  const { layers = [], point = "block_out", norms, lens, lenses = [], states } = watch;
  const { probes = [], projections = [], features = [] } = watch;
  if (layers.length === 0 && (norms || states || lens !== undefined)) {
    throw refusal(`${path}.layers`, `${path}.layers is required for norms, lens and states.`);
  }
  const named = probes.length + projections.length + features.length;
  if (!norms && !states && lens === undefined && named === 0) {
    throw fieldRefusal(path, "one of norms, lens, states, probes, projections and features is required.");
  }
  checkHeads(path, watch);
  if (lens !== undefined && !streamPoints.has(point)) {
    throw fieldRefusal(`${path}.lens`, `reads block_in, mid and block_out, not ${point}.`);
  }
  if (point === "head_out" && projections.length > 0) {
    throw fieldRefusal(
      `${path}.projections`,
      "not possible at head_out, whose activations are not of the hidden size.",
    );
  }
  if (lenses.length > 0 && (lens === undefined || point !== "block_out")) {
    throw fieldRefusal(`${path}.lenses`, "needs lens, the number of candidates, and the point block_out.");
  }
}

async function projectionsOf(
  { layers = [], projections = [], point }: LiveWatch,
  { vectors, model }: LiveLibrary,
): Promise<NonNullable<Watch["projections"]>> {
  const found: { name: string; layer: number; vector: Float32Array }[] = [];
  for (const name of projections) {
    const own = await inField(`${path}.projections`, vectors.layers(name));
    const wanted = layers.length === 0 ? own : layers.filter((layer) => own.includes(layer));
    if (wanted.length === 0) {
      throw fieldRefusal(
        `${path}.projections`,
        `${name} has layers ${own.join(", ")}, but none of them is watched.`,
      );
    }
    for (const layer of wanted) {
      const { vector } = await inField(`${path}.projections`, vectors.layer(name, layer, model));
      const shown = wanted.length === 1 ? name : `${name}@${layer}`;
      found.push({ name: shown, layer, ...pointField(point), vector });
    }
  }
  return found;
}

async function dictionariesOf(
  { features = [] }: LiveWatch,
  { dictionaries, model }: LiveLibrary,
): Promise<NonNullable<Watch["dictionaries"]>> {
  const found: NonNullable<Watch["dictionaries"]>[number][] = [];
  for (const [index, { dictionary: name, top = 5 }] of features.entries()) {
    const field = `${path}.features[${index}].dictionary`;
    if (found.some((one) => one.name === name)) throw fieldRefusal(field, `${name} is listed twice.`);
    const { stored, places } = await inField(field, dictionaries.fitting(name, model));
    found.push({ name, layer: stored.layer, ...pointField(stored.point), top, dictionary: places });
  }
  return found;
}

async function lensesOf(
  { layers = [], lenses = [] }: LiveWatch,
  { lenses: shelf, model }: LiveLibrary,
): Promise<NonNullable<Watch["lenses"]>> {
  const found: NonNullable<Watch["lenses"]>[number][] = [];
  for (const [at, name] of lenses.entries()) {
    const lens = await inField(`${path}.lenses[${at}]`, shelf.fitting(name, model));
    const translators = layers.flatMap((layer, index) => {
      const translator = lens.translator(layer);
      return translator === undefined ? [] : [{ index, ...translator }];
    });
    if (translators.length === 0) {
      const own = lens.stored.layers.join(", ");
      throw fieldRefusal(`${path}.lenses[${at}]`, `${name} has layers ${own}, but none of them is watched.`);
    }
    found.push({ name, translators });
  }
  return found;
}

/** The probes of a request, without duplicates. */
export class ProbeList {
  readonly all: NonNullable<LivePlan["probes"]>[number][] = [];

  constructor(private readonly library: LiveLibrary) {}

  async index(field: string, name: string): Promise<number> {
    const known = this.all.findIndex((probe) => probe.name === name);
    if (known >= 0) return known;
    const { probes, model } = this.library;
    const { layer, point, weight, bias } = await inField(field, probes.folded(name, model));
    this.all.push({ name, layer, ...pointField(point), weight, bias });
    return this.all.length - 1;
  }
}
