import { InvalidInput, missing } from "./invalid-input.js";
import { limits } from "./limits.js";

type Examples = ReadonlyArray<{ text: string; prompt?: string; split: "train" | "test" }>;

/** Prompts are required for rows `response` and refused otherwise. */
export function checkPrompts(examples: ReadonlyArray<{ prompt?: string }>, rows = "last"): void {
  const wanted = rows === "response";
  const odd = examples.findIndex(({ prompt }) => (prompt !== undefined) !== wanted);
  if (odd === -1) return;
  const field = `examples[${odd}].prompt`;
  if (wanted) throw missing(field, "is required for rows response.");
  throw new InvalidInput(field, `is for rows response, not for ${rows}.`);
}

export function checkSplits(examples: Examples): void {
  for (const split of ["train", "test"]) {
    const count = examples.filter((example) => example.split === split).length;
    if (count < limits.examples_per_split_min) {
      throw new InvalidInput(
        "examples",
        `at least ${limits.examples_per_split_min} with split ${split}, got ${count}.`,
      );
    }
  }
}

export function checkClasses(examples: ReadonlyArray<{ split: string; label: number }>): void {
  for (const split of ["train", "test"]) {
    const members = examples.filter((example) => example.split === split);
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

/** Refuses texts that occur in both splits: their held-out figures would measure memorization. */
export function checkLeaks(examples: Examples): void {
  const whole = ({ prompt = "", text }: Examples[number]) => JSON.stringify([prompt, text]);
  const training = new Set(examples.filter(({ split }) => split === "train").map(whole));
  const leaked = examples.findIndex((example) => example.split === "test" && training.has(whole(example)));
  if (leaked !== -1) {
    throw new InvalidInput(`examples[${leaked}].text`, "occurs in both splits; held-out texts must be new.");
  }
}
