import type { PatchSweepResult } from "../../contracts/index.js";
import type { Cell, Figure } from "../../findings/figure.js";
import { figureOf, percent, signed } from "../../findings/numbers.js";
import { patchFinding } from "../../findings/patch-finding.js";
import {
  bestOfHeads,
  type PlacedSite,
  patchPoints,
  patchTokens,
  placedSites,
  positionName,
  showsShares,
  sitesAt,
  strongestHeads,
} from "../../findings/patch-sweep.js";
import type { Findings } from "../../report/parts.js";
import { visible } from "../../text/visible.js";
import { patchByLayer } from "./figures-by-layer.js";

/** Where one activation moves the answer: layers over tokens; for heads, layers over heads, and the strongest over tokens. */
export function patchSweepFindings(result: PatchSweepResult): Findings {
  const [pair] = result.pairs;
  const of =
    pair === undefined || result.pairs.length > 1
      ? `the mean of ${result.pairs.length} pairs`
      : `${visible(pair.target_token)} minus ${visible(pair.foil_token)}`;
  const sites = placedSites(result);
  const drawn: Drawn = {
    result,
    tokens: patchTokens(result),
    shares: showsShares(sites),
  };
  const { says, controls } = patchFinding(result);
  return {
    summary: [
      says,
      controls,
      `Logit difference (${of}): ${figureOf(result.clean)} in the clean run, ${figureOf(result.corrupted)} in the corrupted one, ` +
        `${figureOf(result.restored)} with one of the patched run's own activations patched back.`,
    ],
    cautions: [
      result.direction === "denoise"
        ? "An activation that restores the answer is sufficient for it while the rest of the run is corrupted. Whether it is necessary is a separate question; use noising to test it."
        : "An activation whose replacement breaks the answer is necessary for it. Whether it is sufficient is a separate question; use denoising to test it.",
      "A patch carries everything that differs between the two prompts at that position. Choose a corrupted prompt that differs in exactly one thing.",
    ],
    parts: [
      ...patchPoints(result).flatMap((point) =>
        point === "head_out" ? headMaps(drawn, sites) : [tokenMap(drawn, sites, point)],
      ),
      ...patchByLayer(result, sites, drawn.shares),
    ],
  };
}

/** Maximum number of heads drawn over tokens. */
const headsDrawn = 12;

/** Data shared by all maps of a result. */
interface Drawn {
  result: PatchSweepResult;
  tokens: ReturnType<typeof patchTokens>;
  /** Whether recoveries are drawn instead of changes. */
  shares: boolean;
}

const name = (token: string | undefined) => (token === undefined ? "several" : visible(token));

function tokensOf({ result, tokens }: Drawn, site: PlacedSite): string {
  const { clean, corrupted } = tokens[site.column] as Drawn["tokens"][number];
  const where = positionName(result, site.position);
  return clean === corrupted ? `${where}, ${name(clean)}` : `${where}, ${name(clean)} vs. ${name(corrupted)}`;
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
    ...(site.inside ? [] : ["cannot change anything"]),
    ...(site.recovery === null ? [] : [`recovery ${percent(site.recovery)}`]),
    ...(site.recovery_interval === undefined
      ? []
      : [`95 % interval ${percent(site.recovery_interval.low)} to ${percent(site.recovery_interval.high)}`]),
    `logit difference ${figureOf(site.logit_difference)} (${signed(site.change)})`,
    ...(site.change_length === null || site.row_length === null
      ? []
      : [`change ${figureOf(site.change_length)} of an activation of norm ${figureOf(site.row_length)}`]),
    ...(site.control === undefined ? [] : [`random change: ${signed(site.control.change)}`]),
  ].join("\n");
}

/** Columns of a site's values, after those of its place in the map. */
const siteColumns = [
  { name: "position", label: "position" },
  { name: "clean", label: "clean token" },
  { name: "corrupted", label: "corrupted token" },
  { name: "recovery", label: "recovery" },
  { name: "logit_difference", label: "logit difference" },
  { name: "change", label: "change" },
  { name: "recovery_low", label: "recovery, interval from" },
  { name: "recovery_high", label: "to" },
  { name: "change_length", label: "norm of the change" },
  { name: "row_length", label: "norm of the activation" },
  { name: "control_change", label: "change with a random vector" },
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

/** The chart of a map, for any columns. */
function chartOf({ shares }: Drawn, columns: { above: string; below: string }[]) {
  return {
    kind: "sites" as const,
    columns,
    value: shares ? "recovery" : "change",
    legend: shares ? "recovery" : "change of the logit difference",
    least: shares ? 1 : 0,
  };
}

const faint = "Faint cells cannot change anything: nothing reads them, or both runs are identical there.";

function meaning({ shares }: Drawn, what: string): string {
  return shares
    ? `How far a single patched ${what} moves the logit difference, from the unpatched run (0) to the run that the activation comes from (1). `
    : `How far a single patched ${what} moves the logit difference. `;
}

function valueText({ shares }: Drawn, site: PlacedSite | undefined): string {
  if (site === undefined) return "";
  return shares ? percent(site.recovery ?? 0) : signed(site.change);
}

/** Layers over tokens, for one point. */
function tokenMap(drawn: Drawn, all: readonly PlacedSite[], point: string): Figure {
  const { result, tokens, shares } = drawn;
  const sites = sitesAt(all, point);
  const only = point === "block_out";
  const at = new Map(sites.map((site) => [`${site.layer} ${site.column}`, site]));
  return {
    id: only ? "patch-map" : `patch-map-${point.replace("_", "-")}`,
    title: `${shares ? "Recovery" : "Change"} by layer and token${only ? "" : `, ${point}`}`,
    description: `${meaning(drawn, "activation")}Labels below each column: the clean prompt's token and, if different, the corrupted prompt's. ${faint}`,
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

/** Layers over heads, each at the token with its largest effect; and the strongest heads over tokens. */
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
    description: `${meaning(drawn, "head")}Each head is shown at the ${result.positions.length === 1 ? positionName(result, result.positions[0] as number) : "token with its largest effect"}. ${faint}`,
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
  // The row with the largest number is drawn on top, which is the strongest head.
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
      description: `${meaning(drawn, "head")}The ${strongest.length === 1 ? "head" : `${strongest.length} heads`} with the largest effect, as block.head, at each token. ${faint}`,
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
