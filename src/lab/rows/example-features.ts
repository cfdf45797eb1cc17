import type { Excluded } from "../../contracts/excluded.js";
import type { ProbeConfig, SaeConfig } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import type { OperationInput } from "../../operations/run.js";
import { bytesText } from "../../text/words.js";
import { type AllRows, allRows, sharedRows } from "./all-rows.js";
import { type ExampleTokens, exampleTokens } from "./example-tokens.js";
import { checkPoints, inContext } from "./open-context.js";
import { packedContext, tokensOfBatch } from "./packing.js";
import { checkLayers, checkLength } from "./tokens.js";

/** An autoencoder trained on examples rather than an extraction. */
export type SaeExamplesConfig = SaeConfig & { examples: NonNullable<SaeConfig["examples"]> };

/** Activations of a data set at one point of blocks: per example the last token's, a mean, or every token's. */
export interface ExampleFeatures {
  /** float32 [rows, hidden] for each selected layer; one row per example unless all tokens were read. */
  byLayer: Map<number, Float32Array>;
  /** Activations that the means of each layer exclude. */
  excluded?: Map<number, Excluded>;
  /** 1 for a row of a training example, 0 for a held-out one. */
  train: Uint8Array;
  /** If every token was read: the text and token of each row. */
  all?: ReadRows;
}

export interface ReadRows extends AllRows {
  /** Held-out rows that also occur in training texts. */
  shared: number;
}

/**
 * Captures every example's rows for all selected layers in one pass over packed batches.
 * @param position for rows last: another token, counted from the end (-1 is the last one)
 */
export async function exampleFeatures(
  input: OperationInput<ProbeConfig | SaeExamplesConfig>,
  position = -1,
): Promise<ExampleFeatures> {
  const { config, model, clock, progress, signal } = input;
  checkLayers(model, config.layers);
  const { rows = "last", point = "block_out", examples } = config;
  const texts: ExampleTokens[] = [];
  for (const [index, example] of examples.entries()) {
    const what = `examples[${index}].text`;
    const text = await exampleTokens(model, example, rows, what);
    checkLength(model, text.tokens, config.max_input_tokens, what);
    texts.push({ ...text, tokens: upTo(text.tokens, position, what) });
  }
  const training = examples.map(({ split }) => split === "train");
  const sizesOfRows = { layers: config.layers.length, hidden: model.info.nEmbd };
  const all = rows === "all" ? allRows(texts, sizesOfRows) : undefined;
  const tokens = texts.reduce((sum, text) => sum + text.tokens.length, 0);
  const longest = Math.max(...texts.map((text) => text.tokens.length));
  const sizes = { count: texts.length, tokens, longest };
  const most = tokensOfBatch(model, { layers: config.layers, everyToken: rows !== "last" });
  const stage = all === undefined ? "capture" : `capturing ${all.texts.length} rows, ${bytesText(all.bytes)}`;
  progress({ stage, done: 0, total: texts.length });
  return inContext(input, packedContext(sizes, most), async (context) => {
    checkPoints(context, [point]);
    if (position !== -1 && !context.causal) {
      throw new UserError(
        "This model reads texts in both directions; only the last token (-1) can be probed.",
      );
    }
    const captured = await clock.measure("compute", () =>
      context.features({
        sequences: texts.map(({ tokens }) => tokens),
        layers: config.layers,
        point,
        rows: rows === "response" ? "mean" : rows,
        starts: Int32Array.from(texts, ({ start }) => start),
        onProgress: (done, total) => progress({ stage, done, total }),
        ...(signal === undefined ? {} : { signal }),
      }),
    );
    const owners = all?.texts ?? training.keys();
    return {
      byLayer: new Map([...captured].map(([layer, states]) => [layer, states.data])),
      ...((rows === "mean" || rows === "response") && {
        excluded: new Map([...captured].map(([layer, { excluded }]) => [layer, excluded])),
      }),
      train: Uint8Array.from(owners, (text) => (training[text] ? 1 : 0)),
      ...(all && { all: { ...all, shared: context.causal ? sharedRows(texts, training) : 0 } }),
    };
  });
}

/** A text up to a position, counted from its end: in a causal model its last row is the one there. @throws UserError */
function upTo(tokens: Int32Array, position: number, what: string): Int32Array {
  if (tokens.length + position >= 0) return tokens.slice(0, tokens.length + position + 1);
  throw new UserError(`${what} has ${tokens.length} tokens; it has no token ${position}.`);
}
