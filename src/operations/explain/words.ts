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
      `${length === undefined ? "unscaled" : `scaled to norm ${length}`}, each replacing a token ` +
      `embedding in a prompt of ${verbaliser} (${drawn})` +
      `${controls ? "; controls: shuffled activations, and no activation" : ""}.`
    );
  },
  tables: [],
} satisfies Words<"explain">;
