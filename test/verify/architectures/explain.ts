import { tokenEmbedding } from "../../support/embeddings.js";
import type { Subject } from "./check-model.js";
import type { Check } from "./report.js";

/**
 * Rows instead of token embeddings, where the model takes them: a token's own embedding, read from the file and scaled as
 * the graph scales it, gives the typed token's answer to the bit, alone and among others. Where it takes none, it says why.
 */
export async function explain(
  { model, context, tokens }: Subject,
  _tool: string,
  path: string,
): Promise<Check> {
  const { supported, reason, tokenScale } = await context.embeddingInput();
  const problems: string[] = [];
  if (!supported) {
    const sentence = /^(The architecture '[^']+' |Token embeddings |The model's )[^\n]{15,}\.$/.test(reason);
    return {
      name: "explain",
      ok: sentence,
      detail: sentence ? "" : `refused with "${reason}"`,
      note: reason,
    };
  }
  const { nEmbd, nVocab } = model.info;
  const [before, after] = [tokens.slice(0, 3), tokens.slice(4, 7)];
  const request = { before, after, maxTokens: 4, logits: true };
  for (const token of [tokens[3] as number, 1, nVocab - 1]) {
    const own = await tokenEmbedding(path, token, nEmbd);
    const row = own.map((value) => Math.fround(value * tokenScale));
    const answers = [];
    for (const fillings of [[{ token }], [{ row }], [{ token: 2 }, { row }]]) {
      const found = (await context.explain({ ...request, fillings })).at(-1);
      answers.push(JSON.stringify([[...found!.logits!], [...found!.answers[0]!.tokens]]));
    }
    if (answers[0] !== answers[1]) problems.push(`token ${token}: its embedding gives another answer`);
    if (answers[1] !== answers[2]) problems.push(`token ${token}: another answer among others`);
  }
  const measured = { scale: tokenScale };
  return { name: "explain", ok: problems.length === 0, detail: problems.join("; "), measured };
}
