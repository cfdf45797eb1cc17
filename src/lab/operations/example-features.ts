import type { ProbeConfig } from "../../contracts/index.js";
import { exampleTokens } from "./example-tokens.js";
import { checkPoints, openContext } from "./open-context.js";
import type { OperationInput } from "./operation.js";
import { packedContext, tokensOfBatch } from "./packing.js";
import { checkLayers, checkLength } from "./tokens.js";
import type { SaeExamplesConfig } from "./train-layers.js";

/** Block outputs of a data set, or another point of blocks: of each example its last token's, or a mean. */
export interface ExampleFeatures {
  /** float32 [examples, hidden], row by row, for each selected layer. */
  byLayer: Map<number, Float32Array>;
  /** 1 for a training example, 0 for a held-out one. */
  train: Uint8Array;
}

/** Captures every example's row for all selected layers in one pass over packed batches. */
export async function exampleFeatures(
  input: OperationInput<ProbeConfig | SaeExamplesConfig>,
): Promise<ExampleFeatures> {
  const { config, model, clock, progress, signal } = input;
  checkLayers(model, config.layers);
  const { rows = "last" } = config;
  const sequences: Int32Array[] = [];
  const starts: number[] = [];
  for (const [index, example] of config.examples.entries()) {
    const what = `examples[${index}].text`;
    const { tokens, start } = await exampleTokens(model, example, rows, what);
    checkLength(model, tokens, config.max_input_tokens, what);
    sequences.push(tokens);
    starts.push(start);
  }
  const tokens = sequences.reduce((sum, { length }) => sum + length, 0);
  const longest = Math.max(...sequences.map(({ length }) => length));
  const texts = { count: sequences.length, tokens, longest };
  const context = await clock.measure("context", () =>
    openContext(model, packedContext(texts, tokensOfBatch(model))),
  );
  const { point = "block_out" } = config;
  try {
    checkPoints(context, [point]);
    const captured = await clock.measure("compute", () =>
      context.features({
        sequences,
        layers: config.layers,
        point,
        rows: rows === "response" ? "mean" : rows,
        starts: Int32Array.from(starts),
        onProgress: (done, total) => progress({ stage: "capture", done, total }),
        ...(signal === undefined ? {} : { signal }),
      }),
    );
    return {
      byLayer: new Map([...captured].map(([layer, states]) => [layer, states.data])),
      train: Uint8Array.from(config.examples, ({ split }) => (split === "train" ? 1 : 0)),
    };
  } finally {
    await context.close();
  }
}
