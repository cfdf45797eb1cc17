import { createReadStream } from "node:fs";
import { open, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { asyncBufferFromFile, type FileMetaData, parquetMetadataAsync, parquetRead } from "hyparquet";
import { fileWriter, ParquetWriter } from "hyparquet-writer";
import { UserError } from "../../contracts/user-error.js";
import { syncFolder } from "../../files/durable.js";
import type { Artifacts } from "../artifacts.js";
import { tableName } from "./plan.js";

/** Texts per row group: a merge holds one group of each part in memory. */
const groupRows = 2048;

/** One text of an extraction: where its rows are, and how its entry in the data describes it. */
export interface TableRow {
  /** Index in the data set. */
  text: number;
  /** The entry's `id`, as text. */
  id: string | null;
  shard: string;
  /** Its first row in the shard, and their number. */
  row: number;
  rows: number;
  tokens: number;
  label: string | null;
  split: string | null;
  /** Of the text as it is read, in UTF-8. */
  sha256: string;
}

type Column = keyof TableRow;

const columns = {
  text: "INT32",
  id: "UTF8?",
  shard: "UTF8",
  row: "INT32",
  rows: "INT32",
  tokens: "INT32",
  label: "UTF8?",
  split: "UTF8?",
  sha256: "UTF8",
} satisfies Record<Column, string>;
const names = Object.keys(columns) as Column[];

const schema = [
  { name: "root", num_children: names.length },
  ...names.map((name) => {
    const kind = columns[name];
    const repetition_type = kind.endsWith("?") ? ("OPTIONAL" as const) : ("REQUIRED" as const);
    return kind === "INT32"
      ? { name, type: "INT32" as const, repetition_type }
      : { name, type: "BYTE_ARRAY" as const, converted_type: "UTF8" as const, repetition_type };
  }),
];

/** Writes a table row by row. The same rows give the same bytes. */
export class TableWriter {
  readonly #path: string;
  readonly #writer: ParquetWriter;
  #rows: TableRow[] = [];

  /** @param path an earlier file there is overwritten */
  constructor(path: string) {
    this.#path = path;
    this.#writer = new ParquetWriter({ writer: fileWriter(path), schema, createdBy: "tapline" });
  }

  async add(row: TableRow): Promise<void> {
    this.#rows.push(row);
    if (this.#rows.length === groupRows) await this.#flush();
  }

  /** Writes the rest. @param final the file's name once it is complete and on disk; unchanged by default */
  async finish(final?: string): Promise<void> {
    await this.#flush();
    await this.#writer.finish();
    if (final === undefined) return;
    const file = await open(this.#path, "r+");
    await file.sync().finally(() => file.close());
    await rename(this.#path, final);
    await syncFolder(dirname(final));
  }

  async #flush(): Promise<void> {
    if (this.#rows.length === 0) return;
    const columnData = names.map((name) => ({ name, data: this.#rows.map((row) => row[name]) }));
    this.#rows = [];
    await this.#writer.write({ columnData, rowGroupSize: groupRows });
  }
}

/** Copies a finished table next to an index. */
export async function copyTable(table: string, artifacts: Artifacts, index: string): Promise<void> {
  await artifacts.create(tableName(index), async (file) => {
    let position = 0;
    for await (const bytes of createReadStream(table) as AsyncIterable<Buffer>) {
      await file.write(bytes, position);
      position += bytes.length;
    }
  });
}

/** The rows of a table, one row group in memory. @throws UserError if it cannot be read */
export async function* tableRows(path: string): AsyncGenerator<TableRow> {
  const refuse = (error: Error) =>
    new UserError(`${path} is not the table of an extraction: ${error.message}.`);
  const file = await asyncBufferFromFile(path).catch((error) => Promise.reject(refuse(error)));
  const metadata: FileMetaData = await parquetMetadataAsync(file).catch((error) =>
    Promise.reject(refuse(error)),
  );
  let rowStart = 0;
  for (const { num_rows } of metadata.row_groups) {
    const rowEnd = rowStart + Number(num_rows);
    let rows: TableRow[] = [];
    await parquetRead({
      ...{ file, metadata, columns: names, rowStart, rowEnd, rowFormat: "object" },
      onComplete: (read: unknown) => {
        rows = read as TableRow[];
      },
    }).catch((error) => Promise.reject(refuse(error)));
    yield* rows;
    rowStart = rowEnd;
  }
}
