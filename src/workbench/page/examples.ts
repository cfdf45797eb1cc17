import { limits } from "../../contracts/limits.js";

/** A text of one of two classes, with its split if the file has one. */
export interface LabelledText {
  text: string;
  label: 0 | 1;
  split?: "train" | "test";
}

/** Leaves room in the Lab's limit for splits and other settings. */
const mostBytes = limits.job_body_bytes * 0.9;

/**
 * Reads examples from a file: JSON Lines or CSV with a header row, both with `text`, `label` (0 or 1) and optionally
 * `split` (train or test).
 * @param rowsOf parses CSV according to RFC 4180
 * @throws Error with the place of the fault
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
      `${name}: a probe needs ${limits.examples_min} to ${limits.examples} examples, got ${found.length}.`,
    );
  }
  const size = new TextEncoder().encode(JSON.stringify(found)).length;
  if (size > mostBytes) {
    throw new Error(`${name}: the examples may have at most ${mostBytes} bytes, got ${size}.`);
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
      throw new Error(`${place}: invalid JSON.`);
    }
    if (typeof value !== "object" || value === null)
      throw new Error(`${place}: expected an object with text and label.`);
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
      `The first row must name the columns text and label; got ${head.join(", ").slice(0, 80) || "nothing"}.`,
    );
  }
  return rows.flatMap((row, at) =>
    row.every((cell) => cell.trim() === "")
      ? []
      : [exampleOf(`Row ${at + 2}`, row[text], row[label], split < 0 ? undefined : row[split])],
  );
}

function exampleOf(place: string, text: unknown, label: unknown, split: unknown): LabelledText {
  if (typeof text !== "string" || text.trim() === "") throw new Error(`${place}: text is missing.`);
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
    throw new Error(`${place}: label must be 0 or 1, got ${JSON.stringify(label ?? "").slice(0, 40)}.`);
  }
  const side = String(split ?? "")
    .trim()
    .toLowerCase();
  if (!["", "train", "test"].includes(side))
    throw new Error(`${place}: split must be train or test, got ${side.slice(0, 40)}.`);
  return { text, label: known, ...(side !== "" && { split: side as "train" }) };
}

/** Holds out every third text of each class without a split. */
export function withSplits(examples: readonly LabelledText[]): Required<LabelledText>[] {
  const seen = [0, 0];
  return examples.map(({ text, label, split }) => {
    const at = seen[label] as number;
    seen[label] = at + 1;
    return { text, label, split: split ?? (at % 3 === 2 ? "test" : "train") };
  });
}
