/** A stretch of a text: prose, or what stands between two lines of three backticks or tildes. */
export interface Block {
  code: boolean;
  /** What follows the opening fence, such as a language; empty for prose. */
  label: string;
  text: string;
}

const opening = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;

/**
 * Splits a text into prose and fenced code, as CommonMark fences it: without a closing fence, code runs to the end.
 * @param most blocks; what comes after them stays together as prose
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
