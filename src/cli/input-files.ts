import { readFile } from "node:fs/promises";
import { UsageError } from "./exit-code.js";

/** The text of a file, or of standard input for `-`. @throws UsageError */
export async function readInput(path: string): Promise<string> {
  try {
    if (path !== "-") return withoutMark(await readFile(path, "utf8"));
    const chunks: Buffer[] = [];
    for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
    return withoutMark(Buffer.concat(chunks).toString());
  } catch (error) {
    throw new UsageError(`Cannot read ${path} (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** Editors on Windows may start a file with a byte order mark. */
function withoutMark(text: string): string {
  return text.replace(/^\uFEFF/, "");
}

/** A file's JSON object. @throws UsageError */
export async function readConfig(path: string): Promise<Record<string, unknown>> {
  const config = parseJson(await readInput(path), path);
  if (typeof config !== "object" || config === null || Array.isArray(config)) {
    throw new UsageError(`${path} is not a JSON object.`);
  }
  return config as Record<string, unknown>;
}

/** A submission, either as sent or from a `job.json`. @throws UsageError */
export async function readSubmission(path: string): Promise<Record<string, unknown>> {
  const read = await readConfig(path);
  const isJob = read.id !== undefined && typeof read.config === "object" && read.config !== null;
  return isJob ? (read.config as Record<string, unknown>) : read;
}

/** Prompts: one per line, or JSON, JSON Lines or CSV with a `prompt` or `text` column. @throws UsageError */
export async function readPrompts(path: string): Promise<string[]> {
  const text = await readInput(path);
  const kind = kindOf(path, text);
  if (kind === "text") return text.split(/\r?\n/).filter((line) => line.trim() !== "");
  return recordsOf(text, kind, path).map((record, index) => {
    if (typeof record === "string") return record;
    const { prompt, text: words } = record as Record<string, unknown>;
    const found = prompt ?? words;
    if (typeof found !== "string") {
      throw new UsageError(`Entry ${index + 1} of ${path} has neither a prompt nor a text.`);
    }
    return found;
  });
}

/**
 * Examples of a probe or an autoencoder: JSON, JSON Lines, or CSV with a header. The Lab validates the fields; numeric
 * fields of a CSV are converted to numbers.
 * @throws UsageError
 */
export async function readExamples(path: string): Promise<Record<string, unknown>[]> {
  const text = await readInput(path);
  const kind = kindOf(path, text);
  if (kind === "text") {
    throw new UsageError(
      `${path} is neither JSON, JSON Lines nor CSV with the columns text, label and split.`,
    );
  }
  return recordsOf(text, kind, path).map((record, index) => {
    if (typeof record !== "object" || record === null) {
      throw new UsageError(`Entry ${index + 1} of ${path} is not an object with text, label and split.`);
    }
    const example = record as Record<string, unknown>;
    if (kind !== "csv") return example;
    const { label, ...rest } = example;
    if (label === undefined || label === "") return rest;
    return { ...rest, label: /^[01]$/.test(String(label)) ? Number(label) : label };
  });
}

/** Prompt pairs: JSON, JSON Lines, or CSV with a header, where empty fields count as missing. @throws UsageError */
export async function readPairs(path: string): Promise<Record<string, unknown>[]> {
  const text = await readInput(path);
  const kind = kindOf(path, text);
  if (kind === "text")
    throw new UsageError(`${path} is neither JSON, JSON Lines nor CSV with the columns clean and corrupted.`);
  return recordsOf(text, kind, path).map((record, index) => {
    if (typeof record !== "object" || record === null)
      throw new UsageError(`Entry ${index + 1} of ${path} is not an object with clean and corrupted.`);
    const given = Object.entries(record);
    return Object.fromEntries(kind === "csv" ? given.filter(([, value]) => value !== "") : given);
  });
}

type Kind = "json" | "jsonl" | "csv" | "text";

/** By file name, or for standard input and unknown extensions by the start of the text. */
function kindOf(path: string, text: string): Kind {
  const ending = /\.(jsonl|ndjson|json|csv|txt)$/i.exec(path)?.[1]?.toLowerCase();
  if (ending === "ndjson") return "jsonl";
  if (ending === "txt") return "text";
  if (ending !== undefined) return ending as Kind;
  const start = text.trimStart();
  if (start.startsWith("[")) return "json";
  if (start.startsWith("{")) return "jsonl";
  return /^(?:[^\n]*,)?"?(?:text|prompt|clean)"?\s*[,\r\n]/i.test(start) ? "csv" : "text";
}

function recordsOf(text: string, kind: Exclude<Kind, "text">, path: string): unknown[] {
  switch (kind) {
    case "json": {
      const list = parseJson(text, path);
      if (!Array.isArray(list)) throw new UsageError(`${path} is not a JSON array.`);
      return list;
    }
    case "jsonl":
      return text
        .split(/\r?\n/)
        .map((line, index) => [line, index + 1] as const)
        .filter(([line]) => line.trim() !== "")
        .map(([line, number]) => parseJson(line, `line ${number} of ${path}`));
    case "csv":
      return csvRecords(text, path);
  }
}

function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${what} is not JSON: ${(error as Error).message}.`);
  }
}

/** Rows of a CSV file (RFC 4180) as objects whose keys are the header's names in lower case. */
function csvRecords(text: string, path: string): Record<string, string>[] {
  const [header, ...rows] = csvRows(text, path);
  if (header === undefined) return [];
  const names = header.map((name) => name.trim().toLowerCase());
  return rows.map((row, index) => {
    if (row.length !== names.length) {
      throw new UsageError(
        `Row ${index + 2} of ${path} has ${row.length} fields, but its header has ${names.length}. Put texts with commas in quotes.`,
      );
    }
    return Object.fromEntries(names.map((name, column) => [name, row[column] as string]));
  });
}

function csvRows(text: string, path: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  // A quoted field, in which "" is a quote; or a plain field; then a comma, a line break or the end.
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|\r|$)/y;
  while (field.lastIndex < text.length) {
    const at = field.lastIndex;
    const match = field.exec(text);
    if (match === null) {
      const line = text.slice(0, at).split("\n").length;
      throw new UsageError(
        `${path} is not valid CSV: line ${line} has a quote that does not enclose a whole field.`,
      );
    }
    row.push(match[1] === undefined ? (match[2] as string) : match[1].replaceAll('""', '"'));
    if (match[3] === ",") {
      if (field.lastIndex === text.length) row.push("");
      else continue;
    }
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  }
  if (row.length > 0) rows.push(row);
  return rows;
}
