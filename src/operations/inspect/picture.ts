import type { InspectResult } from "../../contracts/index.js";
import { drawnLayers, lensReadings, lensViewMeanings, viewValues } from "../../findings/lens.js";
import { inspectFinding } from "../../findings/story.js";
import { oneLine } from "../../findings/text.js";
import { bars } from "../../terminal/bars.js";
import type { Canvas } from "../../terminal/canvas.js";
import {
  attentionPicture,
  decompositionPicture,
  innerPointsPicture,
  lensGrid,
  measureGrid,
  normsGrid,
  readingGrid,
  routingPicture,
  targetGrid,
} from "../../terminal/inspect-grids.js";
import { legend } from "../../terminal/legend.js";
import { finding, heading } from "../../terminal/page.js";
import { magnitudeScale, probabilityScale } from "../../terminal/paint.js";
import { visible } from "../../text/visible.js";
import { layersText, type Picture } from "../picture.js";

/** An inspect job: the logit lens, its summary in one sentence, norms, and the model's next tokens. */
export function inspectPicture(
  whole: Pick<
    InspectResult,
    | "tokens"
    | "layers"
    | "all_layers"
    | "all_layers_from"
    | "next_tokens"
    | "target_token"
    | "target_token_id"
    | "points"
    | "attention"
    | "routing"
    | "decomposition"
    | "lens"
  >,
  canvas: Canvas,
): string[] {
  const result = { ...whole, layers: drawnLayers(whole) };
  return [
    ...lensPicture(result, canvas),
    ...targetPicture(result, canvas),
    ...finding(inspectFinding(whole), canvas),
    "",
    ...measurePicture(result, canvas),
    ...innerPointsPicture(result, canvas),
    ...attentionPicture(result.attention, canvas),
    ...routingPicture(result, canvas),
    ...decompositionPicture(result.decomposition, canvas),
  ];
}

type Read = Pick<InspectResult, "tokens" | "layers" | "next_tokens" | "lens" | "target_token">;

/** A grid per lens, in the same colors: its top token, or the view that the canvas selects. */
function lensPicture(result: Read, canvas: Canvas): string[] {
  const { lensView: view = "token" } = canvas;
  const [, ...others] = lensReadings(result);
  if (view === "token") {
    const key = legend(probabilityScale, "0", "1", canvas);
    return [
      heading("Logit lens", lensViewMeanings.token, key, canvas),
      ...lensGrid(result, canvas).split("\n"),
      "",
      ...others.flatMap((reading) => [
        heading(reading.name, lensViewMeanings.token, key, canvas),
        ...readingGrid(result, reading, canvas),
        "",
      ]),
    ];
  }
  const readings = lensReadings(result);
  const values = readings.flatMap(({ layers }) => layers.flatMap((found) => viewValues(found, view) ?? []));
  const most = values.reduce((a, b) => Math.max(a, b), 0);
  const key = legend(magnitudeScale, "low", "high", canvas);
  const followed = view === "rank" ? ` “${visible(result.target_token ?? "")}”` : "";
  const drawn = readings.flatMap((reading) => {
    const grid = measureGrid(result, reading, view, most, canvas);
    if (grid.length === 0) return [];
    return [heading(reading.name, `${lensViewMeanings[view]}${followed}`, key, canvas), ...grid, ""];
  });
  return drawn.length > 0 ? drawn : [`The result does not contain ${view} for every token.`, ""];
}

function targetPicture(
  result: Pick<InspectResult, "tokens" | "layers" | "target_token">,
  canvas: Canvas,
): string[] {
  const grid = targetGrid(result, canvas);
  if (grid.length === 0) return [];
  const name = `Target “${visible(result.target_token ?? "")}”`;
  return [
    heading(name, "rank and probability in the lens", legend(probabilityScale, "0", "1", canvas), canvas),
    ...grid,
    "",
  ];
}

/** Norms and next tokens, which captures of a serving model also show. */
export function measurePicture(
  result: Pick<InspectResult, "tokens" | "layers" | "next_tokens">,
  canvas: Canvas,
): string[] {
  return [
    heading(
      "Norms",
      "L2 norm of the residual stream after each block",
      legend(magnitudeScale, "low", "high", canvas),
      canvas,
    ),
    ...normsGrid(result, canvas).split("\n"),
    "",
    heading("Next token", "the model's prediction", "", canvas),
    ...bars(result.next_tokens, canvas).split("\n"),
  ];
}

export default {
  asked: (config) => [
    [
      "Inspected",
      `${oneLine(config.prompt ?? `${config.tokens?.length} token ids`)} (${layersText(config)})`,
    ],
  ],
  draw: inspectPicture,
} satisfies Picture<"inspect">;
