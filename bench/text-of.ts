import type { Model } from "../src/native/index.js";
import { TestRandom } from "../test/support/random.js";

/** A text of exactly this many tokens. */
export async function textOf(model: Model, length: number): Promise<string> {
  const random = new TestRandom(length);
  const letters = Array.from({ length }, () => "abcdefghij"[random.below(10)]);
  for (let words = length; words > 0; words--) {
    for (const end of ["", ".", "?!", ", 7"]) {
      const text = letters.slice(0, words).join(" ") + end;
      if ((await model.tokenize(text)).length === length) return text;
    }
  }
  throw new Error(`No text of ${length} tokens was found.`);
}
