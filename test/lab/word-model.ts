import type { Model } from "../../src/native/index.js";

/** A model whose tokens are words with the space before them, numbered as they come; 0 is its BOS. */
export function wordModel(info: object = {}): Model {
  const words: string[] = [];
  const ids = (text: string) =>
    (text.match(/ ?[^ ]+| +$/g) ?? []).map(
      (word) => (words.includes(word) ? words.indexOf(word) : words.push(word) - 1) + 1,
    );
  return {
    info: { nLayer: 4, nEmbd: 2, nCtxTrain: 8, addBos: true, devices: [{ host: true }], ...info },
    tokenize: async (text: string, { special = true } = {}) =>
      Int32Array.of(...(special ? [0] : []), ...ids(text)),
    pieces: async (tokens: Int32Array) =>
      Array.from(tokens, (id) => (id === 0 ? "<s>" : (words[id - 1] ?? `#${id}`))),
  } as unknown as Model;
}
