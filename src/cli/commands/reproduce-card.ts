import type { Card } from "../../contracts/card.js";
import { ports } from "../../contracts/limits.js";
import { exitCodes, UsageError } from "../exit-code.js";
import { measureCard } from "./card.js";

interface Options {
  url?: string;
  out?: string;
  json?: boolean;
  quiet?: boolean;
}

/**
 * Measures a card again and compares every figure.
 * @returns false if the file is not a card
 * @throws UsageError if the card was changed, or is of another model, profile or data
 */
export async function repeatedCard(file: string, { url, out, json, quiet }: Options): Promise<boolean> {
  const { readConfig } = await import("../input-files.js");
  const read = await readConfig(file);
  if (read.kind !== "tapline card") return false;
  const [{ intactCard }, { bundledData }, { compareCards }, { writeCard }, { print, printJson }] =
    await Promise.all([
      import("../intact-card.js"),
      import("../../card/data/index.js"),
      import("../../card/repeat.js"),
      import("../../card/files.js"),
      import("../output.js"),
    ]);
  const card = await intactCard(read, file);
  const { settings, profile } = card;
  const again = await measureCard(
    url ?? `http://127.0.0.1:${ports.inference}`,
    {
      ...{
        profile: profile.name,
        strengths: settings.strengths,
        random: settings.random,
        seed: settings.seed,
      },
      ...{ answerTokens: settings.answer_tokens, target: settings.target },
      ...{ given: settings.given, data: { ...bundledData, ...settings.given } },
    },
    { quiet: quiet === true || json === true },
  );
  if (again === undefined) return true;
  const differs = differences(card, again);
  if (differs.length > 0) throw new UsageError(`The card cannot be repeated here: ${differs.join("; ")}.`);
  const figures = compareCards(card, again);
  const failed = figures.filter(({ held }) => !held).length;
  if (out !== undefined) await writeCard(out, again);
  if (failed > 0) process.exitCode = exitCodes.failed;
  if (json) await printJson({ held: failed === 0, figures, card: again });
  else {
    const lines = figures.map(({ what, low, high, seen, held }) => {
      const figure = seen === null ? "not measured" : seen.toPrecision(4);
      return `${held ? "  ok    " : "  MISSED"} ${what}: ${figure} (${low.toPrecision(4)} to ${high.toPrecision(4)})`;
    });
    const summary =
      failed === 0
        ? "Every figure is within the card's interval."
        : `${failed} of ${figures.length} figures are outside.`;
    await print([...lines, summary].join("\n"));
  }
  return true;
}

/** What makes two cards incomparable. */
function differences(card: Card, again: Card): string[] {
  const texts: string[] = [];
  if (card.model.fingerprint !== again.model.fingerprint) {
    texts.push(`it is of ${card.model.id}, and ${again.model.id} is served`);
  }
  if (JSON.stringify(card.profile.uses) !== JSON.stringify(again.profile.uses)) {
    texts.push(`the vectors of the profile ${card.profile.name} differ`);
  }
  for (const [name, hash] of Object.entries(card.settings.data)) {
    if (again.settings.data[name] !== hash) texts.push(`its ${name} differ`);
  }
  return texts;
}
