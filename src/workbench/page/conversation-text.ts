import { textOf } from "../thought-clock.js";
import type { Conversation, Turn, TurnAnswer } from "../wire.js";
import { thoughtWords } from "./thoughts.js";

/** A conversation as Markdown. HTML from a model stays inert: outside code, every `<` is escaped. */
export function asMarkdown({ title, turns }: Conversation): string {
  const parts = [`# ${inert(title)}`, ...turns.flatMap(turnParts)];
  return `${parts.join("\n\n")}\n`;
}

function turnParts({ question, answers, interventions, model }: Turn & { model?: string | null }): string[] {
  return [
    "## Question",
    inert(question),
    ...answers.flatMap((answer) => [
      `## ${headingOf(answer, answers.length, model)}`,
      ...(answer.edited && interventions.length > 0
        ? [`Interventions:\n\n\`\`\`json\n${JSON.stringify(interventions, null, 2)}\n\`\`\``]
        : []),
      ...thoughts(answer),
      inert(textOf(answer)),
      ...(answer.error === undefined ? [] : [`*${inert(answer.error)}*`]),
    ]),
  ];
}

function headingOf({ edited }: TurnAnswer, count: number, model: string | null | undefined): string {
  const who = model == null ? "" : ` of ${inert(model)}`;
  if (count === 1) return `Answer${who}`;
  return edited ? `Answer${who}, with interventions` : `Baseline answer${who}`;
}

function thoughts({ tokens, thoughtSeconds }: TurnAnswer): string[] {
  const thought = tokens.filter(({ thinking }) => thinking === true).map(({ text }) => text);
  const text = thought.join("").trim();
  if (text === "") return [];
  const words = thoughtWords(thought.length, thoughtSeconds);
  return [`> ${words}:\n>\n> ${inert(text).replaceAll("\n", "\n> ")}`];
}

/** Markdown with escaped HTML and images. Fenced code needs no escaping. */
function inert(text: string): string {
  let fence = "";
  const lines = text.split("\n").map((line) => {
    const [, mark = ""] = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/.exec(line) ?? [];
    if (fence !== "") {
      if (mark.startsWith(fence) && line.trim() === mark) fence = "";
      return line;
    }
    if (mark !== "") {
      fence = mark;
      return line;
    }
    return line.replaceAll("<", "&lt;").replaceAll("![", "!\\[");
  });
  // A fence that was never closed must not swallow what follows.
  return [...lines, ...(fence === "" ? [] : [fence])].join("\n");
}
