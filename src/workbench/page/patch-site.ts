/** A site of a patch sweep's maps: in addresses, in figures, and in requests. */

import type { JobOf, PatchSweepResult } from "../../contracts/index.js";
import { type ChangedPoint, changedPoints } from "../../contracts/names.js";
import type { Figure } from "../../findings/figure.js";
import { readMarks } from "../../operations/patch_sweep/contract-marked-text.js";
import { promptPairs } from "../../operations/patch_sweep/contract-pairs.js";
import { numberIn } from "./lists.js";

export interface Site {
  layer: number;
  position: number;
  point: ChangedPoint;
  head?: number;
}

const heads = "patch-heads";

/** The site of a row of a map; undefined for other figures. */
export function siteOf(figure: Figure, row: number): Site | undefined {
  const cells = figure.rows[row];
  const point = pointOf(figure.id);
  if (cells === undefined || point === undefined) return undefined;
  const cell = (name: string) => cells[figure.columns.findIndex((column) => column.name === name)];
  const position = Number(cell("position"));
  if (figure.id === heads) {
    // Its rows are heads, named layer.head.
    const [layer, head] = String(cell("head")).split(".").map(Number) as [number, number];
    return { layer, position, point, head };
  }
  const layer = Number(cell("layer"));
  return point === "head_out"
    ? { layer, position, point, head: Number(cell("head")) }
    : { layer, position, point };
}

function pointOf(figure: string): ChangedPoint | undefined {
  if (figure === heads) return "head_out";
  if (figure === "patch-map") return "block_out";
  return changedPoints.find((point) => figure === `patch-map-${point.replace("_", "-")}`);
}

/** A site in an address. */
export function siteQuery({
  layer,
  position,
  point,
  head,
}: Site): Record<string, string | number | undefined> {
  return {
    ...{ l: layer, t: position, e: undefined },
    p: point === "block_out" ? undefined : point,
    h: head,
  };
}

/** The site in an address; undefined without one. */
export function siteIn(query: URLSearchParams): Site | undefined {
  const [layer, position, head] = ["l", "t", "h"].map((name) => numberIn(query, name, /^-?\d{1,6}$/));
  const point = changedPoints.find((one) => one === (query.get("p") ?? "block_out"));
  if (layer === undefined || position === undefined || point === undefined) return undefined;
  return { layer, position, point, ...(head !== undefined && { head }) };
}

/** The row of a site in a map; undefined if the map does not have it. */
export function rowOfSite(figure: Figure, site: Site): number | undefined {
  const row = figure.rows.findIndex((_, at) => {
    const found = siteOf(figure, at);
    return (
      found !== undefined &&
      found.layer === site.layer &&
      found.position === site.position &&
      found.point === site.point &&
      found.head === site.head
    );
  });
  return row < 0 ? undefined : row;
}

/** The details of a site in a result's maps; undefined if no map has it. */
export function siteDetail(figures: readonly Figure[], site: Site): string | undefined {
  for (const figure of figures) {
    const row = rowOfSite(figure, site);
    if (row !== undefined) return figure.details[row];
  }
  return undefined;
}

/** A comparison that patches one state of one prompt into the run of the other. */
export interface Effect {
  /** The donor text up to the token whose state is patched in. */
  donor: string;
  /** The tokens that this text must have on its own. */
  tokens: number[];
  /** The submission, with a norm-matched random control. */
  body: Record<string, unknown>;
}

/**
 * The comparison that generates with only this site patched. It takes the state from the donor's last token, so the donor
 * text ends there.
 * @param job a sweep of one pair
 */
export function effectOf(
  job: Pick<JobOf<"patch_sweep">, "model" | "config"> & { result: PatchSweepResult },
  site: Site,
): Effect {
  const { pairs, direction } = job.result;
  const { config } = job;
  const marked = config.positions !== undefined && !Array.isArray(config.positions);
  const [given] = promptPairs(config) as [{ clean: string; corrupted: string }];
  const [pair] = pairs as [(typeof pairs)[number]];
  const [from, into] = (direction === "denoise" ? ["clean", "corrupted"] : ["corrupted", "clean"]) as [
    "clean",
    "corrupted",
  ];
  const text = (side: "clean" | "corrupted") =>
    marked ? readMarks(given[side], `The ${side} text`).text : given[side];
  const place = (side: "clean" | "corrupted") => {
    const { spans, tokens } = pair[side];
    const { position } = site;
    return spans?.[position]?.position ?? (position < 0 ? tokens.length + position : position);
  };
  const [taken, put] = [place(from), place(into)];
  const { tokens, token_ids } = pair[from];
  const donor = beginningOf(text(from), tokens, taken);
  return {
    donor,
    tokens: token_ids.slice(0, taken + 1),
    body: {
      ...{ operation: "compare", model: job.model, prompt: text(into), donor_prompt: donor },
      ...{ intervention: "patch", layers: [site.layer], positions: [[put, put]], strengths: [1] },
      ...{ controls: true, max_tokens: 8, target_token: pair.target_token },
      ...(site.point !== "block_out" && { point: site.point }),
      ...(site.head !== undefined && { heads: [site.head] }),
    },
  };
}

/** A text up to one of its tokens. */
function beginningOf(text: string, tokens: readonly string[], place: number): string {
  const rest = tokens.slice(place + 1).join("");
  return text.endsWith(rest) ? text.slice(0, text.length - rest.length) : text;
}
