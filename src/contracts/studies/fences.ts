import type { StudyPackage } from "./package.js";

/** A section of a text: prose, or a fenced code block. */
export interface Block {
  code: boolean;
  /** The info string after the opening fence, such as a language; empty for prose. */
  label: string;
  text: string;
}

const opening = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;

/**
 * Splits a text into prose and fenced code, following CommonMark: without a closing fence, code runs to the end.
 * @param most maximum number of blocks; the rest becomes one block of prose
 */
export function blocksOf(text: string, most = 200): Block[] {
  const blocks: Block[] = [];
  let current: Block = { code: false, label: "", text: "" };
  let lines: string[] = [];
  let fence = "";
  const turn = (next: Block) => {
    current.text = lines.join("\n");
    if (current.code || current.text.trim() !== "") blocks.push(current);
    current = next;
    lines = [];
  };
  for (const line of text.split("\n")) {
    const [, mark = "", label = ""] = (blocks.length < most && opening.exec(line)) || [];
    if (!current.code && mark !== "") {
      fence = mark;
      turn({ code: true, label: label.trim(), text: "" });
    } else if (current.code && label.trim() === "" && mark.startsWith(fence)) {
      turn({ code: false, label: "", text: "" });
    } else lines.push(line);
  }
  turn(current);
  return blocks;
}

/** Maximum number of blocks of one label in a package. */
const mostLabelled = 100;

/** The texts of a package's fenced blocks with a label, from all its text fields, in order. */
export function labelledBlocks(study: StudyPackage, wanted: string): string[] {
  const texts = [
    study.question,
    study.hypothesis,
    study.method,
    study.finding,
    study.limitations,
    ...study.entries.flatMap(({ answer = "", note = "" }) => [answer, note]),
  ];
  const found: string[] = [];
  for (const text of texts) {
    // Most texts have none: skip parsing them.
    if (!text.includes(wanted)) continue;
    for (const { code, label, text: content } of blocksOf(text)) {
      if (code && label === wanted) found.push(content);
      if (found.length === mostLabelled) return found;
    }
  }
  return found;
}
