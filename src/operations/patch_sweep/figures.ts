import type { PatchSweepResult } from "../../contracts/index.js";
import type { Cell, Figure } from "../../findings/figure.js";
import { figureOf, percent, signed } from "../../findings/numbers.js";
import {
  bestOfHeads,
  type PlacedSite,
  patchControls,
  patchPoints,
  patchStory,
  patchTokens,
  placedSites,
  positionName,
  showsShares,
  sitesAt,
  strongestHeads,
} from "../../findings/patch-sweep.js";
import { visible } from "../../findings/text.js";
import type { Findings } from "../../report/parts.js";
import { patchByLayer } from "./figures-by-layer.js";

/** Where one state moves the answer: layers over tokens; of heads, layers over heads, and the strongest over tokens. */
export function patchSweepFindings(result: PatchSweepResult): Findings {
  const [pair] = result.pairs;
  const of =
    pair === undefined || result.pairs.length > 1
      ? `the mean of ${result.pairs.length} pairs`
      : `${visible(pair.target_token)} less ${visible(pair.foil_token)}`;
  const sites = placedSites(result);
  const drawn: Drawn = {
    result,
    tokens: patchTokens(result),
    shares: showsShares(sites),
  };
  const { restored, random } = patchControls(result);
  return {
    summary: [
      patchStory(result),
      `Logit difference (${of}): ${figureOf(result.clean)} in the clean run, ${figureOf(result.corrupted)} in the corrupted one.`,
      `Controls: with a row of its own put back the patched run moves by ${figureOf(restored)}` +
        (random === undefined
          ? "."
          : `; random changes as long as the patch's move it by at most ${figureOf(random)}.`),
    ],
    cautions: [
      result.direction === "denoise"
        ? "A state that restores the answer is enough for it where the rest of the run is corrupted. That the model needs it is another question: noise asks that one."
        : "A state that spoils the answer is needed for it. That it is enough is another question: denoise asks that one.",
      "What a patch moves is everything in which the two prompts differ at that place. Choose a corrupted prompt that differs in one thing alone.",
    ],
    parts: [
      ...patchPoints(result).flatMap((point) =>
        point === "head_out" ? headMaps(drawn, sites) : [tokenMap(drawn, sites, point)],
      ),
      ...patchByLayer(result, sites, drawn.shares),
    ],
  };
}

/** Heads whose tokens are drawn. */
const headsDrawn = 12;

/** What all maps of a result have in common. */
interface Drawn {
  result: PatchSweepResult;
  tokens: ReturnType<typeof patchTokens>;
  /** Whether recoveries are drawn, or changes. */
  shares: boolean;
}

const name = (token: string | undefined) => (token === undefined ? "several" : visible(token));

function tokensOf({ result, tokens }: Drawn, site: PlacedSite): string {
  const { clean, corrupted } = tokens[site.column] as Drawn["tokens"][number];
  const where = positionName(result, site.position);
  return clean === corrupted
    ? `${where}, ${name(clean)}`
    : `${where}, ${name(clean)} against ${name(corrupted)}`;
}

function detailOf({ result, tokens }: Drawn, site: PlacedSite): string {
  const { clean, corrupted } = tokens[site.column] as Drawn["tokens"][number];
  const point = site.point ?? "block_out";
  const what = site.head !== undefined ? ` head ${site.head}` : point === "block_out" ? "" : ` ${point}`;
  return [
    `layer ${site.layer}${what}, ${positionName(result, site.position)}`,
    clean === corrupted
      ? `both prompts: ${name(clean)}`
      : `clean ${name(clean)}, corrupted ${name(corrupted)}`,
    ...(site.inside ? [] : ["nothing can change here"]),
    ...(site.recovery === null ? [] : [`recovery ${percent(site.recovery)}`]),
    ...(site.recovery_interval === undefined
      ? []
      : [`95 % interval ${percent(site.recovery_interval.low)} to ${percent(site.recovery_interval.high)}`]),
    `logit difference ${figureOf(site.logit_difference)} (${signed(site.change)})`,
    ...(site.change_length === null || site.row_length === null
      ? []
      : [`change ${figureOf(site.change_length)} of a row of ${figureOf(site.row_length)}`]),
    ...(site.control === undefined ? [] : [`random change: ${signed(site.control.change)}`]),
  ].join("\n");
}

/** What is known of a site, as a table's row: behind where it is drawn. */
const siteColumns = [
  { name: "position", label: "position" },
  { name: "clean", label: "clean token" },
  { name: "corrupted", label: "corrupted token" },
  { name: "recovery", label: "recovery" },
  { name: "logit_difference", label: "logit difference" },
  { name: "change", label: "change" },
  { name: "recovery_low", label: "recovery, interval from" },
  { name: "recovery_high", label: "to" },
  { name: "change_length", label: "length of the change" },
  { name: "row_length", label: "length of the row" },
  { name: "control_change", label: "change by a random vector" },
  { name: "inside", label: "can change anything" },
];

function siteRow({ tokens }: Drawn, site: PlacedSite): Cell[] {
  const { clean, corrupted } = tokens[site.column] as Drawn["tokens"][number];
  return [
    site.position,
    clean === undefined ? null : visible(clean),
    corrupted === undefined ? null : visible(corrupted),
    site.recovery,
    site.logit_difference,
    site.change,
    site.recovery_interval?.low ?? null,
    site.recovery_interval?.high ?? null,
    site.change_length,
    site.row_length,
    site.control?.change ?? null,
    site.inside ? 1 : 0,
  ];
}

function tokenColumns({ result, tokens }: Drawn) {
  return tokens.map(({ position, clean, corrupted }) => ({
    above: clean === undefined ? positionName(result, position) : visible(clean),
    below: clean === corrupted ? "" : corrupted === undefined ? "…" : visible(corrupted),
  }));
}

/** How a map is drawn, whatever its columns are. */
function chartOf({ shares }: Drawn, columns: { above: string; below: string }[]) {
  return {
    kind: "sites" as const,
    columns,
    value: shares ? "recovery" : "change",
    legend: shares ? "recovery" : "change of the logit difference",
    least: shares ? 1 : 0,
  };
}

const faint = "Faint cells cannot change anything: nothing reads them, or both runs are the same there.";

function meaning({ shares }: Drawn, state: string): string {
  return shares
    ? `How far one patched ${state} alone moves the logit difference, from the run that is patched (0) to the run that the state is from (1). `
    : `How far one patched ${state} alone moves the logit difference. `;
}

function valueText({ shares }: Drawn, site: PlacedSite | undefined): string {
  if (site === undefined) return "";
  return shares ? percent(site.recovery ?? 0) : signed(site.change);
}

/** Layers over the tokens, of one point. */
function tokenMap(drawn: Drawn, all: readonly PlacedSite[], point: string): Figure {
  const { result, tokens, shares } = drawn;
  const sites = sitesAt(all, point);
  const only = point === "block_out";
  const at = new Map(sites.map((site) => [`${site.layer} ${site.column}`, site]));
  return {
    id: only ? "patch-map" : `patch-map-${point.replace("_", "-")}`,
    title: `${shares ? "Recovery" : "Change"} by layer and token${only ? "" : `, ${point}`}`,
    description: `${meaning(drawn, "state")}Below each column the clean prompt's token, and under it the corrupted prompt's where they differ. ${faint}`,
    chart: chartOf(drawn, tokenColumns(drawn)),
    columns: [
      { name: "layer", label: "layer" },
      siteColumns[0] as (typeof siteColumns)[number],
      { name: "column", label: "column" },
      ...siteColumns.slice(1),
    ],
    rows: sites.map((site) => {
      const [position, ...others] = siteRow(drawn, site) as [Cell, ...Cell[]];
      return [site.layer, position, site.column, ...others];
    }),
    details: sites.map((site) => detailOf(drawn, site)),
    table: {
      head: ["token", "clean", "corrupted", ...result.layers.map((layer) => `layer ${layer}`)],
      rows: tokens.map(({ position, clean, corrupted }, column) => [
        String(position),
        name(clean),
        name(corrupted),
        ...result.layers.map((layer) => valueText(drawn, at.get(`${layer} ${column}`))),
      ]),
    },
  };
}

/** Layers over heads, each head at the token where it moves most; and the strongest heads over the tokens. */
function headMaps(drawn: Drawn, all: readonly PlacedSite[]): Figure[] {
  const { result, tokens, shares } = drawn;
  const heads = result.heads ?? [];
  const sites = sitesAt(all, "head_out");
  const best = bestOfHeads(sites);
  const at = new Map(best.map((site) => [`${site.layer} ${site.head}`, site]));
  const headColumns = [
    { name: "layer", label: "layer" },
    { name: "head", label: "head" },
    { name: "column", label: "column" },
    ...siteColumns,
  ];
  const title = shares ? "Recovery" : "Change";
  const byHead: Figure = {
    id: "patch-map-head-out",
    title: `${title} by layer and head`,
    description: `${meaning(drawn, "head")}Of each head at the ${result.positions.length === 1 ? positionName(result, result.positions[0] as number) : "token where it moves most"}. ${faint}`,
    chart: chartOf(
      drawn,
      heads.map((head) => ({ above: `h${head}`, below: "" })),
    ),
    columns: headColumns,
    rows: best.map((site) => [
      site.layer,
      site.head as number,
      heads.indexOf(site.head as number),
      ...siteRow(drawn, site),
    ]),
    details: best.map((site) => detailOf(drawn, site)),
    table: {
      head: ["layer", ...heads.map((head) => `head ${head}`)],
      rows: result.layers.map((layer) => [
        String(layer),
        ...heads.map((head) => {
          const site = at.get(`${layer} ${head}`);
          return site === undefined ? "" : `${valueText(drawn, site)} (${tokensOf(drawn, site)})`;
        }),
      ]),
    },
  };
  const strongest = strongestHeads(sites, headsDrawn);
  if (strongest.length === 0 || tokens.length < 2) return [byHead];
  // The strongest on top: the row with the greatest number.
  const order = strongest.toReversed().map(({ layer, head }) => `${layer}.${head}`);
  const drawnSites = sites
    .filter(({ layer, head }) => order.includes(`${layer}.${head}`))
    .sort((a, b) => a.column - b.column);
  const own = (label: string) => drawnSites.filter(({ layer, head }) => `${layer}.${head}` === label);
  return [
    byHead,
    {
      id: "patch-heads",
      title: `${title} of the strongest heads by token`,
      description: `${meaning(drawn, "head")}${strongest.length === 1 ? "The one head" : `The ${strongest.length} heads`} that ${strongest.length === 1 ? "moves" : "move"} most, block.head, at each token. ${faint}`,
      chart: { ...chartOf(drawn, tokenColumns(drawn)), rows: { name: "head", names: order } },
      columns: [
        { name: "layer", label: "row" },
        { name: "head", label: "block.head" },
        { name: "column", label: "column" },
        ...siteColumns,
      ],
      rows: drawnSites.map((site) => {
        const label = `${site.layer}.${site.head}`;
        return [order.indexOf(label), label, site.column, ...siteRow(drawn, site)];
      }),
      details: drawnSites.map((site) => detailOf(drawn, site)),
      table: {
        head: ["head", ...tokens.map(({ position }) => positionName(result, position))],
        rows: order.toReversed().map((label) => [label, ...own(label).map((site) => valueText(drawn, site))]),
      },
    },
  ];
}
