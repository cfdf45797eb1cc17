import { visible } from "../text/visible.js";
import { atLayers, type Finding, layersOf, rangeOf, sentence, share } from "./finding.js";
import { figureOf } from "./numbers.js";
import {
  bestOfHeads,
  columnName,
  type PlacedSite,
  patchControls,
  patchPoints,
  patchTokens,
  placedSites,
  positionName,
  type Sweep,
  showsShares,
  siteSize,
  sitesAt,
} from "./patch-sweep.js";
import { alike, bestSpan, type Lead, leads } from "./shapes.js";

/** The points in the order in which they answer where the answer is: states first, then what is added to them. */
const byPoint = [
  ["block_out", ""],
  ["mid", "the residual stream mid-block at "],
  ["block_in", "the residual stream before the block at "],
  ["attn_out", "the attention output at "],
  ["ffn_out", "the MLP output at "],
  ["ffn_in", "the MLP input at "],
  ["head_out", ""],
] as const;

/** What a sentence names: some of the sites, and the sentence. */
interface Named {
  says: string;
  sites: PlacedSite[];
}

/** Where the answer is decided, layer by layer, and whether random changes there do the same. */
export function patchFinding(result: Sweep): Finding {
  const sites = placedSites(result);
  const inside = sites.filter((site) => site.inside);
  if (inside.length === 0) {
    return {
      says: "No site can change anything: the activations of the two prompts are identical there.",
      controls: "Choose prompts that differ at or before the patched tokens.",
    };
  }
  const points = patchPoints(result);
  const [point, what] = byPoint.find(([one]) => points.includes(one)) ?? byPoint[0];
  const named =
    point === "head_out" ? ofHeads(result, inside) : ofTokens(result, sitesAt(sites, point), what);
  return { says: named.says, controls: controlsOf(result, named.sites) };
}

/** Which token the answer depends on at which layers. */
function ofTokens(result: Sweep, sites: readonly PlacedSite[], what: string): Named {
  const layers = [...new Set(result.layers)].sort((a, b) => a - b);
  const shares = showsShares(sites);
  const at = new Map(sites.map((site) => [`${site.layer} ${site.column}`, site]));
  const columns = patchTokens(result).map((_, column) => column);
  const value = (site: PlacedSite | undefined) =>
    site === undefined || !site.inside ? 0 : shares ? (site.recovery ?? 0) : Math.abs(site.change);
  const series = columns.map((column) => layers.map((layer) => value(at.get(`${layer} ${column}`))));
  const stretches = shares ? leads(series) : [];
  // In every sweep, the deepest block's last token is the answer.
  const trivial = (column: number | undefined, layer: number) =>
    what === "" && layers.length > 1 && layer === layers.length - 1 && column === columns.length - 1;
  if (stretches.every(({ series: column, from }) => column === undefined || trivial(column, from))) {
    const counted = series.map((values, column) => values.filter((_, layer) => !trivial(column, layer)));
    return weakest(result, counted, layers, at, what);
  }
  const leading = stretches.filter((one) => one.series !== undefined);
  return {
    says: handOver(result, stretches, layers, what),
    sites: leading.flatMap((one) => sitesOf(one, layers, at)),
  };
}

function sitesOf(
  { series, from, to }: Lead,
  layers: readonly number[],
  at: ReadonlyMap<string, PlacedSite>,
): PlacedSite[] {
  return layers.slice(from, to + 1).flatMap((layer) => at.get(`${layer} ${series}`) ?? []);
}

/** `Up to layer 22 the answer depends on “·France”; from layer 23 on, on the last token, “·is”.` */
function handOver(
  result: Sweep,
  stretches: readonly Lead[],
  layers: readonly number[],
  what: string,
): string {
  const named = stretches.findIndex(({ series }) => series !== undefined);
  const clauses = stretches.map((stretch, at) => {
    const where = atLayers(stretch, layers);
    const answer = at === 0 ? "the answer" : "it";
    if (stretch.series === undefined) return `${where} no single site moves ${answer} half of the way`;
    const on = `on ${what}${tokenName(result, stretch.series)}`;
    return at === named ? `${where} ${answer} depends ${on}` : `${where}, ${on}`;
  });
  return `${sentence(clauses.join("; "))}.`;
}

/** Without a site that moves the answer half of the way: the best one, and the layers at which it is as good. */
function weakest(
  result: Sweep,
  series: readonly (readonly number[])[],
  layers: readonly number[],
  at: ReadonlyMap<string, PlacedSite>,
  what: string,
): Named {
  const tops = series.map((values) => Math.max(...values));
  const column = tops.indexOf(Math.max(...tops));
  const span = bestSpan(series[column] as number[]);
  const sites = sitesOf({ ...span, series: column }, layers, at);
  const where = `${what}${tokenName(result, column)} at ${layersOf(span, layers)}`;
  if (sites.some(({ recovery }) => recovery === null)) {
    const change = rangeOf(
      sites.map((site) => Math.abs(site.change)),
      figureOf,
    );
    return {
      says: `Both runs have the same logit difference, so there is nothing to recover; patching ${where} changes it most, by ${change}.`,
      sites,
    };
  }
  return {
    says: `No single site moves the answer half of the way; the largest effect is that of ${where}.`,
    sites,
  };
}

/** The heads with the largest effects: all that are as good as the best one. */
function ofHeads(result: Sweep, inside: readonly PlacedSite[]): Named {
  const best = bestOfHeads(inside).sort((a, b) => siteSize(b) - siteSize(a));
  const most = siteSize(best[0] as PlacedSite);
  const sites = best.filter((site) => siteSize(site) >= (1 - alike) * most);
  const [first, ...others] = sites as [PlacedSite, ...PlacedSite[]];
  const name = ({ layer, head }: PlacedSite) => `${layer}.${head}`;
  const subject =
    others.length === 0
      ? `head ${name(first)}, at ${tokenName(result, first.column)}, moves the answer most`
      : others.length < 4
        ? `heads ${sites.map(name).join(", ")} move the answer most, about equally`
        : `${sites.length} of ${best.length} heads move the answer most, about equally`;
  return { says: `Of single heads (block.head), ${subject}.`, sites };
}

/** A token as a sentence names it; the last one by its place, too. */
function tokenName(result: Sweep, column: number): string {
  const tokens = patchTokens(result);
  const token = tokens[column] as (typeof tokens)[number];
  const { clean, corrupted, position } = token;
  const marked = result.pairs[0]?.clean.spans !== undefined;
  const length = result.pairs[0]?.clean.tokens.length;
  const last = !marked && column === tokens.length - 1 && (position === -1 || position + 1 === length);
  if (clean === undefined) {
    const first = result.pairs[0]?.clean.tokens.at(position) ?? "";
    return last
      ? "the last token"
      : `${positionName(result, position)} (“${visible(first)}” in the first pair)`;
  }
  const name = corrupted === undefined ? columnName(token) : visible(clean);
  const repeated = tokens.filter((one) => one.clean === clean).length > 1;
  if (last) return `the last token, “${name}”`;
  return `“${name}”${repeated ? ` (${positionName(result, position)})` : ""}`;
}

/** What patching at the named sites does, compared with random changes of the same norm. */
function controlsOf(result: Sweep, sites: readonly PlacedSite[]): string {
  const { restored, random } = patchControls(result);
  const gap = Math.abs(result.clean - result.corrupted);
  const shares = showsShares(sites);
  const write = (change: number) => (shares ? `${share(change / gap)} of the way` : `by ${figureOf(change)}`);
  const effects = sites.map((site) => siteSize(site) * (shares ? gap : 1));
  const intervals = sites.flatMap(({ recovery_interval: interval }) => interval ?? []);
  const spread =
    intervals.length === 0
      ? ""
      : `, 95 % intervals over ${result.pairs.length} pairs from ${share(Math.min(...intervals.map(({ low }) => low)))} ` +
        `to ${share(Math.max(...intervals.map(({ high }) => high)))}`;
  const done =
    shares && effects.length > 1
      ? `${rangeOf(effects, (change) => share(change / gap))} of the way`
      : rangeOf(effects, write);
  const moved = `Patching there moves the logit difference ${done}${spread}`;
  // Batching alone moves it by rounding errors.
  if (gap > 0 && Math.abs(restored) > gap / 20) {
    return `${moved}, but so does patching back the run's own activation, ${write(Math.abs(restored))}: these effects are not reliable.`;
  }
  if (random === undefined) {
    return `${moved}; without random controls, it is open whether any change of this size would do the same.`;
  }
  const compared = `${moved}; norm-matched random changes move it at most ${write(random)}`;
  return 2 * random < Math.min(...effects)
    ? `${compared}, so what is patched matters, not the size of the change.`
    : `${compared}, so any change of this size may do the same.`;
}
