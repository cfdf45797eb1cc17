import { existsSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { open, readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { defaults } from "../../contracts/limits.js";
import { UserError } from "../../contracts/user-error.js";
import { differenceOf } from "../../formats/difference.js";
import { bytesOf } from "../../formats/float.js";
import { type ArtifactFile, Artifacts } from "../artifacts.js";
import { ExtractionFolder, type ExtractionIndex, type IndexHead } from "./folder.js";
import { readShard, type ShardRows } from "./open-extraction.js";
import {
  indexName,
  isIndexName,
  matrixNames,
  type Plan,
  Planner,
  type RowForm,
  rowsName,
  type Shard,
  shardLayout,
  tableName,
  targetsName,
  widthOf,
} from "./plan.js";
import { formOf, readIndex } from "./read-index.js";
import { type TableRow, TableWriter, tableRows } from "./table.js";

/** Bytes of one layer's rows that are collected before they are written. */
const bufferBytes = 4 * 1024 ** 2;

interface Part {
  name: string;
  index: ExtractionIndex;
  files: string[];
}

export interface Merged {
  folder: string;
  index: string;
  parts: number;
  plan: Plan;
  /** Files that an earlier, interrupted merge had finished. */
  kept: number;
}

/**
 * Copies the parts of an extraction into the files that one machine would have written, byte for byte.
 * @param folder holds all parts' files and indices
 * @param out created if its parent exists; an interrupted merge resumes after its finished files
 * @throws UserError if a part is missing or unfinished, or belongs to another extraction
 */
export async function mergeExtraction(
  folder: string,
  out: string,
  {
    signal,
    onTokens = () => {},
  }: { signal?: AbortSignal; onTokens?: (done: number, total: number) => void } = {},
): Promise<Merged> {
  const parts = await readParts(folder);
  const tables = tablesOf(folder, parts);
  const [{ index }] = parts as [Part];
  const { source, shard_tokens = defaults.shard_tokens, made_with, format } = index;
  const form = formOf(index);
  const planner = new Planner(form, [0, 1], shard_tokens);
  for await (const { tokens } of textsOf(parts, form)) {
    signal?.throwIfAborted();
    planner.add(tokens.length, false);
  }
  const plan = planner.finish();
  plan.cut_texts = parts.reduce((sum, { index }) => sum + index.cut_texts, 0);
  const head: IndexHead = { format, source: { ...source, shard: [0, 1] }, made_with, shard_tokens };
  const into = await ExtractionFolder.open(out, [0, 1]);
  try {
    const finished = await into.begin(head, plan);
    const artifacts = new Artifacts(into.path);
    const texts = textsOf(parts, form);
    let done = 0;
    try {
      for (const shard of plan.shards) {
        if (finished.has(shard.file)) for (let n = 0; n < shard.texts; n++) await texts.next();
        else await artifacts.create(shard.file, (file) => copyShard(file, shard, form, texts, signal));
        done += shard.tokens;
        onTokens(done, plan.tokens);
      }
    } finally {
      await texts.return(undefined);
    }
    if (tables !== undefined)
      await mergeTables(tables, parts, new Planner(form, [0, 1], shard_tokens), into, signal);
    await into.write(head, plan, true);
    return { folder: into.path, index: into.index, parts: parts.length, plan, kept: finished.size };
  } finally {
    await into.close();
  }
}

/** The paths of all parts' tables; undefined if they are of an earlier version and have none. @throws UserError */
function tablesOf(folder: string, parts: readonly Part[]): string[] | undefined {
  const tables = parts.map(({ name }) => tableName(name));
  const missing = tables.filter((name) => !existsSync(join(folder, name)));
  if (missing.length === parts.length) return undefined;
  if (missing.length > 0) throw new UserError(`${folder} lacks ${missing.join(", ")}.`);
  return tables.map((name) => join(folder, name));
}

/** Writes the table of all texts. @throws UserError */
async function mergeTables(
  tables: readonly string[],
  parts: readonly Part[],
  planner: Planner,
  into: ExtractionFolder,
  signal: AbortSignal | undefined,
): Promise<void> {
  const name = join(into.path, tableName(into.index));
  const writer = new TableWriter(`${name}.partial`);
  const readers = tables.map(tableRows);
  const texts = parts.reduce((sum, { index }) => sum + index.texts, 0);
  for (let index = 0; index < texts; index++) {
    signal?.throwIfAborted();
    const { value: row, done } = await (readers[index % parts.length] as AsyncGenerator<TableRow>).next();
    if (done || row.text !== index) {
      const table = basename(tables[index % parts.length] as string);
      throw new UserError(
        `${table} has ${done ? "no text" : `text ${row.text}`} where text ${index} should be.`,
      );
    }
    await writer.add({ ...row, ...planner.add(row.tokens, false) });
  }
  await writer.finish(name);
}

/** All parts in order. @throws UserError */
async function readParts(folder: string): Promise<Part[]> {
  const names = (
    await readdir(folder).catch((error: NodeJS.ErrnoException) => {
      throw new UserError(`${folder} cannot be read (${error.code}).`);
    })
  ).filter((name) => isIndexName(name) && name !== indexName([0, 1]));
  const counts = [...new Set(names.map((name) => Number(/-of-(\d+)/.exec(name)?.[1])))].sort((a, b) => a - b);
  const [count] = counts;
  if (count === undefined) {
    throw new UserError(
      `${folder} does not contain parts of an extraction, as tapline extract --shard writes them.`,
    );
  }
  if (counts.length > 1) {
    throw new UserError(`${folder} contains parts of several divisions: into ${counts.join(" and ")} parts.`);
  }
  const missing = Array.from({ length: count }, (_, part) => indexName([part, count])).filter(
    (name) => !names.includes(name),
  );
  if (missing.length > 0) {
    throw new UserError(`${folder} lacks ${missing.length} of ${count} parts: ${missing.join(", ")}.`);
  }
  return Promise.all(Array.from({ length: count }, (_, part) => readPart(folder, part, count))).then(checked);
}

async function readPart(folder: string, part: number, count: number): Promise<Part> {
  const name = indexName([part, count]);
  const index = await readIndex(join(folder, name));
  if (!index.complete) {
    throw new UserError(
      `${join(folder, name)} is not finished: run tapline extract --shard ${part}/${count} again.`,
    );
  }
  return { name, index, files: index.shards.map(({ file }) => join(folder, file)) };
}

/** Parts of one extraction, which agree in everything that determines the numbers. */
function checked(parts: Part[]): Part[] {
  const settings = ({ index: { source, made_with, shard_tokens } }: Part) => ({
    ...source,
    shard: undefined,
    ...made_with,
    shard_tokens,
  });
  const [first, ...others] = parts as [Part, ...Part[]];
  for (const other of others) {
    const difference = differenceOf(settings(first), settings(other));
    if (difference === undefined) continue;
    throw new UserError(
      `${other.name} belongs to another extraction than ${first.name}: ${difference.replace(/ there\b/, ` in ${first.name}`).replace(/ here$/, ` in ${other.name}`)}.`,
    );
  }
  const texts = parts.reduce((sum, { index }) => sum + index.texts, 0);
  for (const [part, { name, index }] of parts.entries()) {
    const expected = Math.ceil((texts - part) / parts.length);
    if (index.texts === expected) continue;
    throw new UserError(
      `${name} has ${index.texts} texts; with ${texts} texts in all, it should have ${expected}.`,
    );
  }
  return parts;
}

/** A text's place in its part's file. */
interface PlacedText {
  index: number;
  tokens: Int32Array;
  file: FileHandle;
  rows: number;
  /** By matrix: file offset of this text's rows. */
  offsets: ReadonlyMap<string, number>;
}

/** The texts of all parts in the data's order: text t is in part t modulo their number. */
async function* textsOf(parts: readonly Part[], form: RowForm): AsyncGenerator<PlacedText> {
  const readers = parts.map((part) => textsOfPart(part, form));
  try {
    for (let index = 0; ; index++) {
      const { value, done } = await (readers[index % readers.length] as AsyncGenerator<PlacedText>).next();
      if (done) return;
      if (value.index !== index) {
        const { name } = parts[index % parts.length] as Part;
        throw new UserError(`The files of ${name} have text ${value.index} where text ${index} should be.`);
      }
      yield value;
    }
  } finally {
    for (const reader of readers) await reader.return(undefined);
  }
}

async function* textsOfPart({ index, files }: Part, form: RowForm): AsyncGenerator<PlacedText> {
  const width = form.hidden * widthOf(form.dtype);
  for (let number = 0; number < files.length; number++) {
    const shard: ShardRows = await readShard({ form, shards: index.shards, files }, number);
    const file = await open(shard.path);
    try {
      for (const [n, index] of shard.indices.entries()) {
        const [start, end] = [shard.starts[n] as number, shard.starts[n + 1] as number];
        const row = form.rows === "all" ? start : n;
        const placed = ([layer, offset]: [number, number], name: (layer: number) => string) =>
          [name(layer), offset + row * width] as const;
        yield {
          ...{ index, tokens: shard.tokenIds.subarray(start, end), file },
          rows: form.rows === "all" ? end - start : 1,
          offsets: new Map([
            ...[...shard.offsets].map((each) => placed(each, rowsName)),
            ...[...shard.targets].map((each) => placed(each, targetsName)),
          ]),
        };
      }
    } finally {
      await file.close();
    }
  }
}

async function copyShard(
  file: ArtifactFile,
  shard: Shard,
  form: RowForm,
  texts: AsyncGenerator<PlacedText>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { head, starts: at } = shardLayout(shard, form);
  const width = form.hidden * widthOf(form.dtype);
  const [indices, starts] = [new Int32Array(shard.texts), new Int32Array(shard.texts + 1)];
  const tokenIds = new Int32Array(shard.tokens);
  const columns = matrixNames(form).map((name) => ({
    name,
    column: new Column(file, at.get(name) as number),
  }));
  for (let n = 0; n < shard.texts; n++) {
    signal?.throwIfAborted();
    const { value: text } = (await texts.next()) as IteratorYieldResult<PlacedText>;
    const start = starts[n] as number;
    indices[n] = text.index;
    tokenIds.set(text.tokens, start);
    starts[n + 1] = start + text.tokens.length;
    for (const { name, column } of columns) {
      await column.copy(text.file, text.offsets.get(name) as number, text.rows * width);
    }
  }
  for (const { column } of columns) await column.flush();
  await file.write(head, 0);
  for (const [name, numbers] of Object.entries({
    text_indices: indices,
    text_starts: starts,
    token_ids: tokenIds,
  })) {
    await file.write(bytesOf(numbers), at.get(name) as number);
  }
}

/** Consecutive bytes of a file, collected from pieces of others. */
class Column {
  readonly #buffer = Buffer.allocUnsafe(bufferBytes);
  #filled = 0;

  constructor(
    private readonly file: ArtifactFile,
    private at: number,
  ) {}

  async copy(from: FileHandle, position: number, length: number): Promise<void> {
    for (let done = 0; done < length; ) {
      if (this.#filled === bufferBytes) await this.flush();
      const most = Math.min(length - done, bufferBytes - this.#filled);
      const { bytesRead } = await from.read(this.#buffer, this.#filled, most, position + done);
      if (bytesRead === 0) throw new UserError("A part's file became shorter while it was being read.");
      this.#filled += bytesRead;
      done += bytesRead;
    }
  }

  async flush(): Promise<void> {
    await this.file.write(this.#buffer.subarray(0, this.#filled), this.at);
    this.at += this.#filled;
    this.#filled = 0;
  }
}
