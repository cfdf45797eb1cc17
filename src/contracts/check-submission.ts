import { checkCompare } from "./check-compare.js";
import { limits } from "./limits.js";
import {
  type Config,
  type Operation,
  operations,
  type ProbeConfig,
  type SaeConfig,
  submissions,
} from "./submission.js";
import { InvalidInput, shown, validate } from "./validate.js";

/**
 * Checks everything about a submission that can be checked without its model.
 * @returns the submission with defaults filled in
 * @throws InvalidInput
 */
export function checkSubmission(body: unknown): Config {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new InvalidInput("", "The body must be a JSON object.");
  }
  const operation = (body as { operation?: unknown }).operation;
  if (operation === undefined)
    throw new InvalidInput("operation", `is required; one of ${operations.join(", ")}.`);
  if (!operations.includes(operation as Operation)) {
    throw new InvalidInput("operation", `must be one of ${operations.join(", ")}, got ${shown(operation)}.`);
  }
  const config = validate(submissions[operation as Operation], body) as Config;
  switch (config.operation) {
    case "inspect":
      if (config.target_token !== undefined && config.follow_answer === true) {
        throw new InvalidInput("follow_answer", "follows another token than target_token; give one of them.");
      }
      break;
    case "compare":
      checkCompare(config);
      break;
    case "probe":
      checkSplits(config);
      checkClasses(config);
      checkLeaks(config);
      break;
    case "sae":
      checkSplits(config);
      checkLeaks(config);
      break;
    case "features":
      if ((config.prompt === undefined) === (config.texts === undefined)) {
        throw new InvalidInput("prompt", "give either prompt or texts.");
      }
      break;
  }
  return config;
}

function checkSplits(config: ProbeConfig | SaeConfig): void {
  for (const split of ["train", "test"]) {
    const count = config.examples.filter((example) => example.split === split).length;
    if (count < limits.examples_per_split_min) {
      throw new InvalidInput(
        "examples",
        `at least ${limits.examples_per_split_min} with split ${split}, got ${count}.`,
      );
    }
  }
}

function checkClasses(config: ProbeConfig): void {
  for (const split of ["train", "test"]) {
    const members = config.examples.filter((example) => example.split === split);
    for (const label of [0, 1]) {
      if (!members.some((example) => example.label === label)) {
        throw new InvalidInput(
          "examples",
          `both classes must occur in each split; ${split} has no label ${label}.`,
        );
      }
    }
  }
}

/** What was trained on is not held out: a figure of such a text says how well it was learnt by heart. */
function checkLeaks({ examples }: ProbeConfig | SaeConfig): void {
  const training = new Set(examples.filter(({ split }) => split === "train").map(({ text }) => text));
  const leaked = examples.findIndex(({ split, text }) => split === "test" && training.has(text));
  if (leaked !== -1) {
    throw new InvalidInput(`examples[${leaked}].text`, "occurs in both splits; held-out texts must be new.");
  }
}
