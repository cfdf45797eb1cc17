import { count } from "../../findings/numbers.js";
import { glimpse } from "../../report/markup.js";
import { firstOf, thinned, type Words } from "../words.js";
import { promptPairs } from "./contract-pairs.js";

export default {
  heading({ pairs }) {
    const [first] = pairs;
    if (first === undefined) return ["Activation patching on", ""];
    const text = `${first.clean.tokens.join("")} / ${first.corrupted.tokens.join("")}`;
    return [
      "Activation patching on",
      pairs.length === 1 ? text : `${count(pairs.length, "pair")}: ${glimpse(text, 80)}, …`,
    ];
  },
  subject: (config) =>
    firstOf(
      promptPairs(config).map(({ clean, corrupted }) => `${glimpse(clean, 80)} / ${glimpse(corrupted, 80)}`),
    ),
  texts: (config) => [
    promptPairs(config)
      .map(({ clean, corrupted }) => `${clean}\n${corrupted}`)
      .join("\n\n"),
  ],
  // Jobs of earlier versions have no points.
  method({ layers, positions, points = ["block_out"], direction, controls, seed }) {
    const where = layers === undefined ? "every layer" : `layers ${layers.join(", ")}`;
    const tokens =
      positions === undefined
        ? "every token"
        : Array.isArray(positions)
          ? `tokens ${positions.join(", ")}`
          : "the last tokens of marked spans";
    const states = points.join() === "block_out" ? "block outputs" : `activations (${points.join(", ")})`;
    return (
      `patch_sweep (${direction}): single ${states} of ${where} at ${tokens} patched from one prompt's run into the other's; ` +
      `logit difference of two tokens${controls ? `, with norm-matched random controls (seed ${seed})` : ""}.`
    );
  },
  tables: [
    ...["block-in", "head-out", "attn-out", "mid", "ffn-out"].map((point) => `patch-map-${point}`),
    "patch-map",
  ],
  *shorter(whole) {
    const sites = whole.sites.map(
      ({ control: _control, change_interval: _change, recovery_interval: _recovery, ...site }) => site,
    );
    const details = "the controls and intervals of each site";
    yield [details, { ...whole, sites }];
    for (const layers of thinned(whole.layers)) {
      yield [
        `${details} and all but ${layers.length} of ${whole.layers.length} layers`,
        { ...whole, layers, sites: sites.filter(({ layer }) => layers.includes(layer)) },
      ];
    }
  },
} satisfies Words<"patch_sweep">;
