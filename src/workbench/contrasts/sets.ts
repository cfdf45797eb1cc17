import { readdir, readFile } from "node:fs/promises";
import Type, { type Static } from "typebox";
import { Value } from "typebox/value";

const text = Type.String({ pattern: "\\S" });
const some = (minItems: number) => Type.Array(text, { minItems });

/** Two lists of texts that differ in one respect, and how to recognize it in an answer. */
export const ContrastSet = Type.Object(
  {
    name: Type.String({ pattern: "^[a-z]{1,16}$" }),
    title: text,
    /** The difference in one sentence. */
    about: text,
    /** Questions on which the strength is measured. */
    questions: some(2),
    /** The same for models without a chat template: beginnings of texts. */
    openings: some(2),
    /** Words that answers along the direction contain, or that they are shorter. */
    expected: Type.Union([
      Type.Object({ markers: some(1) }, { additionalProperties: false }),
      Type.Object({ shorter: Type.Literal(true) }, { additionalProperties: false }),
    ]),
    positive: some(16),
    negative: some(16),
  },
  { additionalProperties: false },
);
export type ContrastSet = Static<typeof ContrastSet>;

/** The order on the page. */
const order = ["cheerful", "formal", "french", "pirate", "concise", "refuses", "unsure", "code"];
const folder = new URL("../../../models/contrasts/", import.meta.url);

/** The contrast sets of this package. @throws Error if a file is not a contrast set */
export async function readContrastSets(from = folder): Promise<ContrastSet[]> {
  const files = (await readdir(from)).filter((name) => name.endsWith(".json"));
  const sets = await Promise.all(
    files.map(async (file) => {
      const set: unknown = JSON.parse(await readFile(new URL(file, from), "utf8"));
      if (Value.Check(ContrastSet, set)) return set;
      throw new Error(`${file} is not a contrast set.`);
    }),
  );
  return sets.sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
}
