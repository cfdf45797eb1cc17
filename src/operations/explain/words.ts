import { publicName } from "../../text/words.js";
import { firstOf, type Words } from "../words.js";

export default {
  heading: ({ explained }, { prompt }) => [
    "In words:",
    prompt ?? explained.map(({ token }) => token.trim()).join(", "),
  ],
  subject: ({ prompt }) => firstOf([prompt]),
  texts: ({ prompt }) => [prompt],
  method(config) {
    const { layer, positions, length, temperature, seed, controls } = config;
    const verbaliser = config.verbaliser === undefined ? "the same model" : publicName(config.verbaliser);
    const drawn = temperature === 0 ? "greedy" : `temperature ${temperature}, seed ${seed}`;
    return (
      `explain: block outputs of layer ${layer} at tokens ${positions.join(", ")}, ` +
      `${length === undefined ? "as long as they are" : `scaled to a length of ${length}`}, each in a token embedding's ` +
      `place in a prompt of ${verbaliser} (${drawn})` +
      `${controls ? "; beside rows with their numbers in another order, and no row" : ""}.`
    );
  },
  tables: [],
} satisfies Words<"explain">;
