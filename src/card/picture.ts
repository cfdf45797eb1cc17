import { type Card, cardMeasures } from "../contracts/card.js";
import { armName } from "./arm-name.js";
import { cardFinding, measureWords } from "./words.js";

/** A card as text: the finding, and a table of settings and measures. */
export function cardPicture(card: Card): string {
  const { says, controls } = cardFinding(card);
  const names = cardMeasures.filter((name) => card.arms.some(({ measures }) => measures[name] !== undefined));
  const rows = card.arms.map((arm) => [
    armName(arm),
    ...names.map((name) => {
      const found = arm.measures[name];
      return found === undefined ? "–" : measureWords[name].text(found.value);
    }),
  ]);
  const head = ["", ...names.map((name) => measureWords[name].name)];
  const widths = head.map((_, column) =>
    Math.max(...[head, ...rows].map((row) => (row[column] as string).length)),
  );
  const line = (row: string[]) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] as number) : cell.padStart(widths[column] as number),
      )
      .join("  ")
      .trimEnd();
  return [says, controls, "", line(head), ...rows.map(line), ...card.notes].join("\n");
}
