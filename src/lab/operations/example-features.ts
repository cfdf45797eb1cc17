import type { ProbeConfig } from "../../contracts/index.js";
import { checkPoints, openContext } from "./open-context.js";
import type { OperationInput } from "./operation.js";
import { packedContext, tokensOfBatch } from "./packing.js";
import { checkLayers, tokenizeInput } from "./tokens.js";
import type { SaeExamplesConfig } from "./train-layers.js";

/** Final-token block outputs of a data set, or another point of blocks. */
export interface ExampleFeatures {
  /** float32 [examples, hidden], row by row, for each selected layer. */
  byLayer: Map<number, Float32Array>;
  /** 1 for a training example, 0 for a held-out one. */
  train: Uint8Array;
}

/** Captures every example's final-token block outputs for all selected layers in one pass over packed batches. */
export async function exampleFeatures(
  input: OperationInput<ProbeConfig | SaeExamplesConfig>,
): Promise<ExampleFeatures> {
  const { config, model, clock, progress, signal } = input;
  checkLayers(model, config.layers);
  const sequences: Int32Array[] = [];
  for (const [index, { text }] of config.examples.entries()) {
    const what = `examples[${index}].text`;
    sequences.push(await tokenizeInput(model, text, config.max_input_tokens, what));
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
