import { limits } from "../../contracts/limits.js";

/** A text of one of two classes; the split where the file says it. */
export interface LabelledText {
  text: string;
  label: 0 | 1;
  split?: "train" | "test";
}

/** What else a job says, and the splits, have room in the Lab's limit, too. */
const mostBytes = limits.job_body_bytes * 0.9;

/**
 * Reads examples out of a file: JSON Lines, an object a line, or CSV whose first row names its columns; both with `text`,
 * `label` (0 or 1) and, where wanted, `split` (train or test).
 * @param rowsOf reads CSV as RFC 4180 has it
 * @throws Error one sentence with the place of what is wrong
 */
export function readExamples(
  name: string,
  content: string,
  rowsOf: (csv: string) => string[][],
): LabelledText[] {
  const text = content.replace(/^\uFEFF/, "");
  const found =
    /\.(?:jsonl|ndjson)$/i.test(name) || text.trimStart().startsWith("{")
      ? ofLines(text)
      : ofTable(rowsOf(text));
  if (found.length < limits.examples_min || found.length > limits.examples) {
    throw new Error(
      `${name} has ${found.length} examples; a probe takes ${limits.examples_min} to ${limits.examples}.`,
    );
  }
  const size = new TextEncoder().encode(JSON.stringify(found)).length;
  if (size > mostBytes) {
    throw new Error(`The examples of ${name} take ${size} bytes; at most ${mostBytes} are handed in.`);
  }
  return found;
}

function ofLines(text: string): LabelledText[] {
  return text.split(/\r?\n/).flatMap((line, at) => {
    if (line.trim() === "") return [];
    const place = `Line ${at + 1}`;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      throw new Error(`${place} is not JSON.`);
    }
    if (typeof value !== "object" || value === null)
      throw new Error(`${place} is no object with text and label.`);
    const { text, label, split } = value as Record<string, unknown>;
    return [exampleOf(place, text, label, split)];
  });
}

function ofTable([head = [], ...rows]: string[][]): LabelledText[] {
  const names = head.map((name) => name.trim().toLowerCase());
  const [text, label, split] = ["text", "label", "split"].map((name) => names.indexOf(name)) as [
    number,
    number,
    number,
  ];
  if (text < 0 || label < 0) {
    throw new Error(
      `The first row has to name the columns text and label; it has ${head.join(", ").slice(0, 80) || "nothing"}.`,
    );
  }
  return rows.flatMap((row, at) =>
    row.every((cell) => cell.trim() === "")
      ? []
      : [exampleOf(`Row ${at + 2}`, row[text], row[label], split < 0 ? undefined : row[split])],
  );
}

function exampleOf(place: string, text: unknown, label: unknown, split: unknown): LabelledText {
  if (typeof text !== "string" || text.trim() === "") throw new Error(`${place} has no text.`);
  const known = new Map<string, 0 | 1>([
    ["0", 0],
    ["1", 1],
    ["false", 0],
    ["true", 1],
  ]).get(
    String(label ?? "")
      .trim()
      .toLowerCase(),
  );
  if (known === undefined) {
    throw new Error(`${place}: label is 0 or 1; got ${JSON.stringify(label ?? "").slice(0, 40)}.`);
  }
  const side = String(split ?? "")
    .trim()
    .toLowerCase();
  if (!["", "train", "test"].includes(side))
    throw new Error(`${place}: split is train or test; got ${side.slice(0, 40)}.`);
  return { text, label: known, ...(side !== "" && { split: side as "train" }) };
}

/** Every third text of each class is held out, where the file does not say which. */
export function withSplits(examples: readonly LabelledText[]): Required<LabelledText>[] {
  const seen = [0, 0];
  return examples.map(({ text, label, split }) => {
    const at = seen[label] as number;
    seen[label] = at + 1;
    return { text, label, split: split ?? (at % 3 === 2 ? "test" : "train") };
  });
}
