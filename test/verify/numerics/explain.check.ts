import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Model } from "../../../src/native/index.js";
import { Values } from "../values.js";
import type { Figure, NumericCheck } from "./check.js";
import { runPython } from "./python.js";

const modelPath = fileURLToPath(new URL("../../../models/demo/tapline-demo.gguf", import.meta.url));

/** The text before the place and after it. */
const prompts = [
  ["The capital of", " is"],
  ["one two three", " five six"],
  ["", " and Mary went to the shop."],
  ["John gave a book to", ""],
] as const;
/** Block outputs of another text, as long as they are and at other lengths, and rows of nothing. */
const lengths = [null, 0.5, 20] as const;

/** Rows that are not a token's embedding, inserted for one, against numpy's pass with the same row there. */
async function run(python: string, folder: string): Promise<Figure[]> {
  const model = await Model.open(modelPath, { gpuLayers: 0 });
  const context = await model.createContext({ nCtx: 128 });
  const { nEmbd, nLayer } = model.info;
  const values = new Values();
  const tokens = await model.tokenize("The capital of Japan is Tokyo");
  const layers = Array.from({ length: nLayer }, (_, i) => i);
  const captured = await context.advance({ tokens, layers, rows: "last" });
  const rows = captured.layers.map(({ states }) => states!.data);
  rows.push(Float32Array.from({ length: nEmbd }, (_, i) => Math.sin(i * i)));
  const cases = [];
  for (const [from, to] of prompts) {
    const before = from === "" ? new Int32Array(0) : await model.tokenize(from);
    const after = to === "" ? new Int32Array(0) : await model.tokenize(to, { special: false });
    for (const [i, found] of rows.entries()) {
      const length = lengths[i % lengths.length] ?? Math.hypot(...found);
      const row = found.map((value) => (value * length) / Math.hypot(...found));
      const [explained] = await context.explain({
        ...{ before, after, fillings: [{ row }], maxTokens: 10, logits: true },
      });
      cases.push({
        ...{ before: [...before], after: [...after] },
        row: values.add(row, [nEmbd]),
        logits: values.add(explained!.logits!, [model.info.nVocab]),
        answer: [...explained!.answers[0]!.tokens],
      });
    }
  }
  await model.close();
  await writeFile(join(folder, "values.f32"), values.bytes());
  await writeFile(join(folder, "cases.json"), JSON.stringify({ model: modelPath, cases }));
  const script = new URL("./explain.py", import.meta.url);
  const results = (await runPython(python, script, [folder])) as Record<string, number>;
  const of = (name: string) => results[name] ?? Number.NaN;
  return [
    { what: "answers to a row: total variation of the next token", value: of("worst"), bound: 2e-3 },
    { what: "words that another would have been more probable than", value: of("other"), bound: 0 },
    { what: "words compared", value: of("words"), bound: 100, atLeast: true },
    {
      what: "a row in the place moves the next token: total variation, median",
      value: of("moved"),
      bound: 0.05,
      atLeast: true,
    },
  ];
}

export default {
  title: "A row in a token embedding's place, against numpy",
  modules: ["numpy"],
  run,
} satisfies NumericCheck;
