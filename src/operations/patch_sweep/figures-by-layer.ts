import type { PatchSite, PatchSweepResult } from "../../contracts/index.js";
import type { Figure } from "../../findings/figure.js";
import { dataOf } from "../../findings/figure.js";
import { figureOf, percent } from "../../findings/numbers.js";
import {
  movedBy,
  type PlacedSite,
  patchPoints,
  positionName,
  siteSize,
  sitesAt,
} from "../../findings/patch-sweep.js";

const randomChange = "norm-matched random change";

interface Found {
  layer: number;
  series: string;
  value: number;
  low?: number;
  high?: number;
  where: string;
}

/**
 * The site with the largest effect in each layer, with its interval, compared with the largest effect of a norm-matched
 * random change there. Omitted for a single layer, or without controls and intervals: the maps show the rest.
 */
export function patchByLayer(
  result: PatchSweepResult,
  sites: readonly PlacedSite[],
  shares: boolean,
): Figure[] {
  const compared = sites.some((site) => site.control !== undefined || intervalOf(site, shares) !== undefined);
  if (result.layers.length < 2 || !compared) return [];
  const points = patchPoints(result);
  const layers = [...result.layers].sort((a, b) => a - b);
  const found = [
    ...points.flatMap((point) =>
      layers.flatMap((layer) => largest(result, sitesAt(sites, point), layer, point, shares)),
    ),
    ...layers.flatMap((layer) => control(result, sites, layer, shares)),
  ];
  const text = (value: number) => (shares ? percent(value) : figureOf(value));
  const between = ({ low, high }: Found) =>
    low === undefined || high === undefined ? "" : `${text(low)} to ${text(high)}`;
  const names = [...new Set(found.map(({ series }) => series))];
  const intervals = found.some(({ low }) => low !== undefined);
  return [
    {
      id: "patch-by-layer",
      title: `Best ${shares ? "recovery" : "change"} by layer`,
      description:
        `The site with the largest effect in each layer${points.length > 1 ? ", per hook point" : ""}, compared with the ` +
        "largest effect of a norm-matched random change in that layer." +
        (intervals ? " Vertical bars are 95 % bootstrap intervals over the pairs." : ""),
      chart: {
        kind: "lines",
        x: "layer",
        y: "value",
        series: "what",
        xAxis: "layer",
        yAxis: shares ? "recovery" : "change of the logit difference",
        steps: true,
        dots: true,
        emphasis: points[0] as string,
        ...(intervals && { interval: { low: "low", high: "high" } }),
      },
      ...dataOf(found, {
        layer: ["layer", (one) => one.layer],
        what: ["patched", ({ series }) => series],
        value: [shares ? "recovery" : "change of the logit difference", (one) => one.value],
        low: ["95 % from", (one) => one.low ?? null],
        high: ["95 % to", (one) => one.high ?? null],
        where: ["where", (one) => one.where],
      }),
      details: found.map((one) =>
        [
          `${one.series}, layer ${one.layer}`,
          `${text(one.value)} at ${one.where}`,
          ...(between(one) === "" ? [] : [`95 %: ${between(one)}`]),
        ].join("\n"),
      ),
      table: {
        head: ["layer", ...names.flatMap((name) => [name, ...(intervals ? ["95 %"] : []), "where"])],
        rows: layers.map((layer) => [
          String(layer),
          ...names.flatMap((name) => {
            const one = found.find((other) => other.layer === layer && other.series === name);
            const cells = one === undefined ? ["", "", ""] : [text(one.value), between(one), one.where];
            return intervals ? cells : [cells[0] as string, cells[2] as string];
          }),
        ]),
      },
    },
  ];
}

function intervalOf(site: PatchSite, shares: boolean) {
  return shares ? site.recovery_interval : site.change_interval;
}

function whereOf(result: PatchSweepResult, { position, head }: PatchSite): string {
  const place = positionName(result, position);
  return head === undefined ? place : `head ${head}, ${place}`;
}

function largest(
  result: PatchSweepResult,
  sites: readonly PlacedSite[],
  layer: number,
  series: string,
  shares: boolean,
): Found[] {
  const [first, ...others] = sites.filter((site) => site.layer === layer);
  if (first === undefined) return [];
  const best = others.reduce((most, site) => (siteSize(site) > siteSize(most) ? site : most), first);
  const value = movedBy(best, shares);
  return [{ layer, series, value, ...intervalOf(best, shares), where: whereOf(result, best) }];
}

function control(
  result: PatchSweepResult,
  sites: readonly PlacedSite[],
  layer: number,
  shares: boolean,
): Found[] {
  const tried = sites.flatMap((site) =>
    site.layer === layer && site.control !== undefined
      ? [{ site, value: movedBy(site.control, shares) }]
      : [],
  );
  const [first, ...others] = tried;
  if (first === undefined) return [];
  const most = others.reduce(
    (one, other) => (Math.abs(other.value) > Math.abs(one.value) ? other : one),
    first,
  );
  return [{ layer, series: randomChange, value: most.value, where: whereOf(result, most.site) }];
}
