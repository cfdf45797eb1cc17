import { firstOf, thinned, type Words, whereText } from "../words.js";

export default {
  heading: ({ tokens }, { prompt }) => ["Inside", prompt ?? tokens.join("")],
  subject: (config) =>
    config.prompt === undefined ? `${config.tokens?.length} token ids` : firstOf([config.prompt]),
  texts: ({ prompt, tokens = [] }) => [prompt ?? tokens.join(" ")],
  method: (config) =>
    `inspect: norms, logit lens and next tokens of ${config.tokens === undefined ? "a raw prompt" : "token ids"} ` +
    `(${whereText(config)}).`,
  tables: ["logit-lens", "norms", "next-tokens"],
  *shorter(whole) {
    const layers = whole.layers.map(({ predictions, ...layer }) => ({
      ...layer,
      ...(predictions === undefined ? {} : { predictions: predictions.map((list) => list.slice(0, 1)) }),
    }));
    const { all_layers, all_layers_from: _, ...own } = whole;
    if (all_layers !== undefined) {
      const selected = `all but ${whole.layers.length} of ${all_layers.length} layers`;
      yield [selected, own];
    }
    const top = "all but the most probable token of each prediction";
    yield [top, { ...own, layers }];
    for (const some of thinned(layers, true)) {
      yield [`${top} and all but ${some.length} of ${layers.length} layers`, { ...own, layers: some }];
    }
  },
} satisfies Words<"inspect">;
