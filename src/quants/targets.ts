import { Model, NativeError } from "../native/index.js";

/** Which token's logit a prompt's graphs explain, in the reference and in every form. */
export interface TargetLine {
  prompt: number;
  target: string;
}

/** The reason for which an architecture has no graphs. */
export interface RefusedLine {
  refused: string;
}

export interface TargetsTask {
  kind: "targets";
  model: string;
  prompts: readonly string[];
  /** Prompts before this one are done. */
  from: number;
  mostTokens: number;
}

/** Most probable tokens among which a target is looked for. */
const candidates = 20;

/**
 * The most probable token after each prompt that a request can name: its text encodes to this token alone.
 * @throws Error with a sentence for users
 */
export async function findTargets(
  { model: path, prompts, from, mostTokens }: TargetsTask,
  onLine: (line: TargetLine | RefusedLine) => Promise<void>,
): Promise<void> {
  const model = await Model.open(path);
  try {
    const context = await model.createContext({ nCtx: mostTokens, nBatch: mostTokens, keepAttention: true });
    for (const [prompt, text] of [...prompts.entries()].slice(from)) {
      const tokens = await model.tokenize(text);
      if (tokens.length < 2 || tokens.length > mostTokens) {
        throw new Error(
          `prompts: 2 to ${mostTokens} tokens are possible, prompt ${prompt + 1} has ${tokens.length}.`,
        );
      }
      const position = tokens.length - 1;
      const { logits } = await context.forward({
        sequences: [{ tokens }],
        logits: Int32Array.of(position),
      });
      const found = await nameable(model, logits!.data as Float32Array);
      if (found === undefined) {
        throw new Error(
          `Prompt ${prompt + 1} has no graph: the text of none of its ${candidates} most probable tokens encodes to one token.`,
        );
      }
      const request = { tokens, targets: [{ position, token: found.token }], nodes: 1, tried: 0, first: 0 };
      const refused = await context.attributionGraphBytes(request).then(
        () => undefined,
        (error: unknown) => {
          if (error instanceof NativeError && error.code === "UNSUPPORTED_ARCHITECTURE") return error.message;
          throw error;
        },
      );
      if (refused !== undefined) return onLine({ refused });
      await onLine({ prompt, target: found.text });
    }
  } finally {
    await model.close();
  }
}

async function nameable(
  model: Model,
  logits: Float32Array,
): Promise<{ token: number; text: string } | undefined> {
  const order = Int32Array.from(logits.keys()).sort(
    (a, b) => (logits[b] as number) - (logits[a] as number) || a - b,
  );
  for (const token of order.subarray(0, candidates)) {
    const [text] = (await model.pieces(Int32Array.of(token))) as [string];
    if (text === "") continue;
    const tokens = await model.tokenize(text, { special: false, parseSpecial: false });
    if (tokens.length === 1 && tokens[0] === token) return { token, text };
  }
  return undefined;
}
