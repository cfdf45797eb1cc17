import { firstOf, type Words } from "../words.js";

export default {
  heading: ({ texts }, { prompt }) => ["Features in", prompt ?? texts[0]?.tokens.join("") ?? ""],
  subject: ({ texts, prompt = "" }) => firstOf(texts ?? [prompt]),
  texts: ({ texts, prompt = "" }) => texts ?? [prompt],
  method: ({ dictionary }) =>
    `features: the block output of each token encoded with the sparse dictionary ${dictionary}; explained variance, ` +
    "L0 and loss recovered on these texts.",
  tables: [],
  *shorter(whole) {
    const texts = whole.texts.map((text) => ({ ...text, top: text.top.map((list) => list.slice(0, 1)) }));
    const strongest = "all but the strongest feature of each token";
    yield [strongest, { ...whole, texts }];
    for (let most = 16; most >= 1; most = Math.floor(most / 2)) {
      const features = whole.features.filter(({ text }) => text < most);
      yield [
        `${strongest} and all but the first ${most} of ${texts.length} texts`,
        { ...whole, texts: texts.slice(0, most), features },
      ];
    }
  },
} satisfies Words<"features">;
