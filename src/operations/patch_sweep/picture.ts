import type { PatchSweepResult } from "../../contracts/index.js";
import { differenceAxis } from "../../findings/axes.js";
import { figureOf, fixed } from "../../findings/numbers.js";
import { patchFinding } from "../../findings/patch-finding.js";
import {
  bestOfHeads,
  columnName,
  movedBy,
  type PlacedSite,
  patchPoints,
  patchTokens,
  placedSites,
  positionName,
  showsShares,
  sitesAt,
  strongestHeads,
} from "../../findings/patch-sweep.js";
import { oneLine } from "../../findings/text.js";
import { type Canvas, narrowest } from "../../terminal/canvas.js";
import { wrap } from "../../terminal/fit.js";
import { legend } from "../../terminal/legend.js";
import { finding, heading, labelled } from "../../terminal/page.js";
import { differenceScale, dim } from "../../terminal/paint.js";
import { tokenGrid } from "../../terminal/token-grid.js";
import { visible } from "../../text/visible.js";
import type { Picture } from "../picture.js";
import { promptPairs } from "./contract-pairs.js";

/** Width in columns of a cell with a number, and of the margin. */
const [headCell, margin] = [8, 6];
const headsNamed = 5;

/**
 * A patch sweep: heat maps of layers over tokens, or of heads over layers, its summary in one sentence, and its controls.
 */
export function patchSweepPicture(
  result: Omit<PatchSweepResult, "note" | "artifacts" | "provenance">,
  canvas: Canvas,
): string[] {
  const sites = placedSites(result);
  const shares = showsShares(sites);
  const value = (site: PlacedSite) => movedBy(site, shares);
  const { reach, digits, legend: ends } = differenceAxis(sites.map(value), shares ? 1 : 0);
  // Coloured by the number as written, so that cells that read alike look alike.
  const written = (site: PlacedSite) => fixed(value(site), digits);
  const tokens = patchTokens(result).map(columnName);
  const points = patchPoints(result);
  const cellOf = (site: PlacedSite) => ({
    text: "",
    figure: site.inside ? written(site) : "·",
    value: 0.5 + Number(written(site)) / reach / 2,
    bold: shares && value(site) >= 0.5,
  });
  const drawn = (columns: readonly string[], chosen: readonly PlacedSite[]) =>
    tokenGrid(
      {
        tokens: columns,
        rows: result.layers.map((layer) => ({
          layer,
          cells: chosen.filter((site) => site.layer === layer).map(cellOf),
        })),
        scale: differenceScale,
        figureOptional: false,
      },
      canvas,
    );
  const tokenMap = (point: string) =>
    drawn(
      tokens,
      sitesAt(sites, point).sort((a, b) => a.column - b.column),
    );
  const [title, meaning] = shares
    ? ["Recovery", "how far one patched activation moves the logit difference"]
    : ["Change", "of the logit difference by one patched activation"];
  const total = Math.max(narrowest, canvas.width);
  const colors = legend(differenceScale, ends[0].text, ends[2].text, canvas);
  // Heads that do not fit into one line are wrapped.
  const heads = result.heads ?? [];
  const wide = Math.floor((total - margin) / headCell);
  const headMap = () => {
    const best = bestOfHeads(sites);
    return Array.from({ length: Math.ceil(heads.length / wide) }, (_, line) => {
      const own = heads.slice(line * wide, (line + 1) * wide);
      return drawn(
        own.map((head) => `h${head}`),
        best.filter(({ head }) => own.includes(head as number)),
      );
    }).flat();
  };
  const strongest = strongestHeads(sites, headsNamed).map(
    (site) =>
      `${site.layer}.${site.head} at ${tokens[site.column]} (${positionName(result, site.position)}) ${written(site)}`,
  );
  return [
    ...points.flatMap((point, at) => [
      ...(at === 0 ? [] : [""]),
      ...(point === "head_out"
        ? [
            heading(
              `${title}, head_out`,
              "of each head at the token with its largest effect",
              colors,
              canvas,
            ),
            ...headMap(),
            ...(strongest.length === 0 ? [] : labelled("Heads", strongest.join(", "), canvas)),
          ]
        : [
            heading(points.join() === "block_out" ? title : `${title}, ${point}`, meaning, colors, canvas),
            ...tokenMap(point),
          ]),
    ]),
    ...wrap("· cannot change anything: nothing reads it, or both runs are identical there", total).map(
      (line) => dim(line, canvas.colors),
    ),
    "",
    ...finding(patchFinding(result), canvas),
    "",
    ...labelled("Logits", measured(result), canvas),
  ];
}

/** The unpatched runs. */
function measured(result: Omit<PatchSweepResult, "note" | "artifacts" | "provenance">): string {
  const [pair] = result.pairs;
  const of =
    result.pairs.length === 1 && pair !== undefined
      ? `“${visible(pair.target_token)}” minus “${visible(pair.foil_token)}”`
      : `target minus foil, mean of ${result.pairs.length} pairs`;
  return (
    `${of}: clean ${figureOf(result.clean)}, corrupted ${figureOf(result.corrupted)}, ` +
    `with its own activation patched back ${figureOf(result.restored)}`
  );
}

export default {
  asked(config) {
    const [first, ...others] = promptPairs(config);
    const { clean = "", corrupted = "" } = first ?? {};
    const [from, into] = config.direction === "denoise" ? [clean, corrupted] : [corrupted, clean];
    const more = others.length === 0 ? "" : `, and ${others.length} pairs more`;
    return [["Patched", `activations of “${oneLine(from)}” into the run of “${oneLine(into)}”${more}`]];
  },
  draw: patchSweepPicture,
} satisfies Picture<"patch_sweep">;
