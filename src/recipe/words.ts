import type { Recipe } from "../contracts/recipe.js";
import { figureOf } from "../findings/numbers.js";
import type { Words } from "../study/index.js";
import { type Outcome, rangeText } from "./outcome.js";

/** A reproduction's text as a study. Its method has a fenced block that names what it reproduces. */
export function reproductionWords(
  name: string,
  recipe: Recipe,
  outcomes: readonly Outcome[],
  method: string,
): Words {
  const held = outcomes.filter((outcome) => outcome.held).length;
  const block = {
    recipe: name,
    paper: recipe.paper,
    expected: outcomes.map(({ expected: { id }, low, high, seen, held: kept }) => ({
      id,
      low,
      high,
      seen,
      held: kept,
    })),
  };
  return {
    title: recipe.title,
    question: `Does this hold here? ${recipe.claim}`,
    hypothesis: outcomes
      .map((each) => `- ${each.expected.what}: ${rangeText(each)} (${each.source})`)
      .join("\n"),
    method: `${method}\n\n\`\`\`reproduction\n${JSON.stringify(block, null, 1)}\n\`\`\``,
    finding: [
      `${held} of ${outcomes.length} values were within their expected ranges.`,
      ...outcomes.map((each) => {
        return `- ${each.held ? "in range" : "out of range"}: ${each.expected.what}: ${figureOf(each.seen)}`;
      }),
    ].join("\n"),
    limitations: recipe.differs,
    license: "CC-BY-4.0",
    omissions: [],
  };
}
