import { interventionOf } from "../../contracts/interventions.js";
import { count } from "../../findings/numbers.js";
import { glimpse } from "../../report/markup.js";
import { cut } from "../../text/words.js";
import { firstOf, type Words, whereText } from "../words.js";
import { positionText } from "./contract-position-text.js";
import { promptsOf } from "./contract-prompts.js";

export default {
  heading: ({ intervention, trials }) => [
    `Effect of ${interventionOf(intervention).noun} on`,
    nameOf(promptsIn(trials)),
  ],
  subject: (config) => firstOf(promptsOf(config)),
  texts: promptsOf,
  method(config) {
    const { intervention, strengths, strength_unit: unit, positions, point, heads } = config;
    const where = whereText(config);
    const what =
      point === undefined
        ? where
        : `${point}${heads === undefined ? "" : ` (heads ${heads.join(", ")})`} instead of the ${where}`;
    return (
      `compare: ${intervention} at strengths ${strengths.join(", ")} ${unit === undefined ? "" : `(${unit}) `}on the ` +
      `${positions === undefined ? "last token" : positionText(positions)}'s ${what}; greedy continuations of at most ` +
      `${config.max_tokens} tokens.`
    );
  },
  settings: ({ seed, max_tokens: maxTokens }) => ({ temperature: 0, seed, maxTokens, thinking: "default" }),
  answers({ trials, intervention }) {
    return promptsIn(trials).map((prompt) => {
      const ofPrompt = trials.filter((trial) => trial.prompt === prompt);
      const [first] = ofPrompt;
      return {
        title: `${intervention} at layer ${first?.layer}: ${glimpse(prompt, 200)}`,
        prompt,
        answer: first?.baseline ?? "",
        note: [
          `Target token ${JSON.stringify(first?.target_token)}, baseline probability ${first?.baseline_probability}. The answer above is the baseline.`,
          ...ofPrompt.map(
            ({ strength, probability, delta, output }) =>
              `Strength ${strength}: probability ${probability} (change ${delta}), continuation ${JSON.stringify(output)}`,
          ),
        ].join("\n"),
      };
    });
  },
  tables: ["dose-response"],
  *shorter(whole) {
    for (const most of [400, 80]) {
      const trials = whole.trials.map((trial) => ({
        ...trial,
        baseline: cut(trial.baseline, most),
        output: cut(trial.output, most),
        ...(trial.control && { control: { ...trial.control, output: cut(trial.control.output, most) } }),
      }));
      yield [`continuations beyond ${most} characters`, { ...whole, trials }];
    }
  },
} satisfies Words<"compare">;

function promptsIn(trials: readonly { prompt: string }[]): string[] {
  return [...new Set(trials.map(({ prompt }) => prompt))];
}

/** The prompts of a result: a result of several must not appear to be about the first alone. */
function nameOf([first = "", ...others]: string[]): string {
  return others.length === 0 ? first : `${count(others.length + 1, "prompt")}: ${glimpse(first, 80)}, …`;
}
