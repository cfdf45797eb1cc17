import type { Detection } from "../../findings/label-finding.js";
import { wilson } from "../../findings/proportions.js";
import type { HeldOut } from "./excerpts.js";

/** Answers one question. */
export type AskModel = (question: string, maxTokens: number) => Promise<string>;

/** Longest label, in characters. */
const mostLabel = 120;

export function labelQuestion(shown: readonly string[]): string {
  const list = shown.map((text, at) => `${at + 1}. ${text}`).join("\n");
  return (
    "In the excerpts below, some words are between « and ». What do these words have in common? " +
    `Answer with a phrase of at most eight words and nothing else.\n\n${list}`
  );
}

export function detectionQuestion(label: string, text: string): string {
  return `Description: ${label}\n\nExcerpt: ${text}\n\nDoes something in the excerpt fit the description? Answer yes or no.`;
}

/** A model's answer as a label: its first line without quotation marks; empty if it said nothing. */
export function labelIn(answer: string): string {
  const line = answer.split("\n").find((one) => one.trim() !== "") ?? "";
  const text = line
    .trim()
    .replace(/^["“'*\s]+|["”'*.\s]+$/g, "")
    .replace(/\s+/g, " ");
  return Array.from(text).slice(0, mostLabel).join("");
}

/** Whether an answer begins with yes or no, or says one of them first; undefined for neither. */
export function verdictIn(answer: string): boolean | undefined {
  const [word] = /\b(?:yes|no)\b/i.exec(answer) ?? [];
  return word === undefined ? undefined : word.toLowerCase() === "yes";
}

/** Tests a label: whether a model that sees only the label can separate held-out excerpts with the feature from those without. */
export async function detect(label: string, heldOut: readonly HeldOut[], ask: AskModel): Promise<Detection> {
  const counts = { active: 0, detected: 0, silent: 0, falsely: 0, unclear: 0 };
  let right = 0;
  for (const { text, active } of heldOut) {
    const verdict = verdictIn(await ask(detectionQuestion(label, text), 8));
    counts[active ? "active" : "silent"] += 1;
    if (verdict === undefined) counts.unclear += 1;
    if (verdict === true) counts[active ? "detected" : "falsely"] += 1;
    if (verdict === active) right += 1;
  }
  const accuracy = right / heldOut.length;
  return { ...counts, accuracy, ...wilson(accuracy, heldOut.length) };
}
