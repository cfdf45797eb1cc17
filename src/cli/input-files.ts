import { readFile } from "node:fs/promises";
import { UsageError } from "./exit-code.js";

/** The text of a file; `-` is standard input. @throws UsageError */
export async function readInput(path: string): Promise<string> {
  try {
    if (path !== "-") return withoutMark(await readFile(path, "utf8"));
    const chunks: Buffer[] = [];
    for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
    return withoutMark(Buffer.concat(chunks).toString());
  } catch (error) {
    throw new UsageError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** Editors on Windows begin a file with a byte order mark. */
function withoutMark(text: string): string {
  return text.replace(/^\uFEFF/, "");
}

/** A file's JSON object. @throws UsageError */
export async function readConfig(path: string): Promise<Record<string, unknown>> {
  const config = parseJson(await readInput(path), path);
  if (typeof config !== "object" || config === null || Array.isArray(config)) {
    throw new UsageError(`${path} holds no JSON object.`);
  }
  return config as Record<string, unknown>;
}

/** A whole submission: as it is sent, or that of a job in its `job.json`. @throws UsageError */
export async function readSubmission(path: string): Promise<Record<string, unknown>> {
  const read = await readConfig(path);
  const isJob = read.id !== undefined && typeof read.config === "object" && read.config !== null;
  return isJob ? (read.config as Record<string, unknown>) : read;
}

/** A prompt a line; or JSON, JSON Lines or CSV with a `prompt` or `text` column. @throws UsageError */
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
 * Examples of a probe or an autoencoder: JSON, JSON Lines, or CSV with a header. What their fields hold is the
 * Lab's to judge; numbers of a CSV are read where a number is meant.
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
      throw new UsageError(`Entry ${index + 1} of ${path} is no example with text, label and split.`);
    }
    const example = record as Record<string, unknown>;
    if (kind !== "csv") return example;
    const { label, ...rest } = example;
    if (label === undefined || label === "") return rest;
    return { ...rest, label: /^[01]$/.test(String(label)) ? Number(label) : label };
  });
}

/** Pairs of prompts: JSON, JSON Lines, or CSV with a header; an empty field of a CSV is none. @throws UsageError */
export async function readPairs(path: string): Promise<Record<string, unknown>[]> {
  const text = await readInput(path);
  const kind = kindOf(path, text);
  if (kind === "text")
    throw new UsageError(`${path} is neither JSON, JSON Lines nor CSV with the columns clean and corrupted.`);
  return recordsOf(text, kind, path).map((record, index) => {
    if (typeof record !== "object" || record === null)
      throw new UsageError(`Entry ${index + 1} of ${path} is no pair with clean and corrupted.`);
    const given = Object.entries(record);
    return Object.fromEntries(kind === "csv" ? given.filter(([, value]) => value !== "") : given);
  });
}

type Kind = "json" | "jsonl" | "csv" | "text";

/** By the name, or for standard input and other names by how the text begins. */
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
      if (!Array.isArray(list)) throw new UsageError(`${path} holds no JSON array.`);
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

/** Rows of a CSV file (RFC 4180) as objects with the names of its first row, in lower case. */
function csvRecords(text: string, path: string): Record<string, string>[] {
  const [header, ...rows] = csvRows(text, path);
  if (header === undefined) return [];
  const names = header.map((name) => name.trim().toLowerCase());
  return rows.map((row, index) => {
    if (row.length !== names.length) {
      throw new UsageError(
        `Row ${index + 2} of ${path} has ${row.length} fields, its header has ${names.length}; texts with commas stand in quotes.`,
      );
    }
    return Object.fromEntries(names.map((name, column) => [name, row[column] as string]));
  });
}

function csvRows(text: string, path: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  // A field in quotes, where two of them are one; or a plain one; then a comma, a line's end, or the end.
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|\r|$)/y;
  while (field.lastIndex < text.length) {
    const at = field.lastIndex;
    const match = field.exec(text);
    if (match === null) {
      const line = text.slice(0, at).split("\n").length;
      throw new UsageError(
        `${path} is no CSV: line ${line} has a quote that does not enclose a whole field.`,
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
