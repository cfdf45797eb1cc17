import { createHash } from "node:crypto";
import { createReadStream, statSync } from "node:fs";
import { basename } from "node:path";
import { isUrl, type RowsRead } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";
import { Helper } from "./helper.js";

/** A text, with the prompt it follows, and the fields of its entry that describe it. */
export interface GivenText {
  text: string;
  prompt?: string;
  id?: string;
  label?: string;
  split?: string;
}

/** The texts of a data set. */
export interface TextSource {
  /** Its name for users. */
  name: string;
  /** @param onBytes receives all bytes that the texts were read from */
  read(onBytes?: (bytes: Uint8Array) => void): AsyncIterable<GivenText>;
}

/** Far longer than any text, so that files without line ends do not exhaust the memory. */
const lineBytes = 16 * 1024 ** 2;

/** The texts of a submission. */
export function givenTexts(
  examples: ReadonlyArray<{ text: string; prompt?: string; label?: number; split?: string }>,
): TextSource {
  return {
    name: "examples",
    async *read(onBytes) {
      for (const { text, prompt, ...about } of examples) {
        onBytes?.(Buffer.from(`${JSON.stringify(prompt === undefined ? text : [prompt, text])}\n`));
        yield { text, ...(prompt !== undefined && { prompt }), ...aboutText(about) };
      }
    },
  };
}

/** Files that are read in this process if they are local, and all that can be read. */
const lines = /\.(jsonl|ndjson|txt)$/i;
const known = /\.(jsonl|ndjson|txt|csv)(\.(gz|bz2|xz))?$|\.parquet$/i;

/**
 * The texts of a data set: a file of one text per line, or JSON Lines with strings or objects with `text`, `prompt` or both,
 * whose empty lines are skipped. Other formats, and URLs, are read by a Python process, which writes them as JSON Lines.
 * @throws UserError for a local file of another format
 */
export function textsOfData(place: string): TextSource {
  if (!isUrl(place) && !known.test(place) && !statSync(place, { throwIfNoEntry: false })?.isDirectory()) {
    throw new UserError(
      `${place} has an unknown format: its name must end in .jsonl, .ndjson, .txt or .csv (also with .gz, .bz2 or .xz) or .parquet, ` +
        "or it must be a folder of Hugging Face datasets.",
    );
  }
  const name = nameOf(place);
  const textOf = /\.txt(\.(gz|bz2|xz))?$/i.test(name) ? (text: string) => ({ text }) : textOfEntry;
  return {
    name,
    async *read(onBytes) {
      let number = 0;
      const chunks = lines.test(place) && !isUrl(place) ? bytesOfFile(place) : bytesOfHelper(place);
      for await (const line of linesOf(chunks, name, onBytes)) {
        number++;
        const text = decoded(line, number, name);
        if (text.trim() !== "") yield textOf(text, number, name);
      }
    },
  };
}

/** The last part of a path or URL, without the query, which may be secret. */
function nameOf(place: string): string {
  const path = isUrl(place) ? place.replace(/[?#].*$/s, "") : place;
  return basename(path.replace(/[/\\]+$/, ""));
}

async function* bytesOfFile(path: string): AsyncGenerator<Buffer> {
  const stream = createReadStream(path, { highWaterMark: 1024 ** 2 });
  try {
    yield* stream as AsyncIterable<Buffer>;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw code === undefined ? error : new UserError(`${path} cannot be read (${code}).`);
  } finally {
    stream.destroy();
  }
}

async function* bytesOfHelper(place: string): AsyncGenerator<Buffer> {
  const helper = new Helper("texts", place);
  try {
    yield* helper.output as AsyncIterable<Buffer>;
    await helper.check();
  } finally {
    await helper.stop();
  }
}

async function* linesOf(
  chunks: AsyncIterable<Buffer>,
  name: string,
  onBytes: (bytes: Uint8Array) => void = () => {},
): AsyncGenerator<Buffer> {
  let rest: Buffer[] = [];
  let kept = 0;
  for await (const chunk of chunks) {
    onBytes(chunk);
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      yield Buffer.concat([...rest, chunk.subarray(from, end)]);
      rest = [];
      kept = 0;
      from = end + 1;
    }
    rest.push(chunk.subarray(from));
    kept += chunk.length - from;
    if (kept > lineBytes) throw new UserError(`${name} has a line of more than ${lineBytes} bytes.`);
  }
  if (kept > 0) yield Buffer.concat(rest);
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decoded(line: Buffer, number: number, name: string): string {
  try {
    const text = utf8.decode(line).replace(/\r$/, "");
    return number === 1 ? text.replace(/^\uFEFF/, "") : text; // a byte order mark from Windows editors
  } catch {
    throw new UserError(`Line ${number} of ${name} is not UTF-8.`);
  }
}

function textOfEntry(line: string, number: number, name: string): GivenText {
  let entry: unknown;
  try {
    entry = JSON.parse(line);
  } catch (error) {
    throw new UserError(`Line ${number} of ${name} is not JSON: ${(error as Error).message}.`);
  }
  const { text, prompt } = Object(entry) as { text?: unknown; prompt?: unknown };
  const found = typeof entry === "string" ? entry : (text ?? prompt);
  if (typeof found !== "string" || found === "") {
    throw new UserError(`Line ${number} of ${name} has neither text nor prompt.`);
  }
  const before =
    typeof entry !== "string" && typeof text === "string" && typeof prompt === "string" ? prompt : "";
  if (/\p{Surrogate}/u.test(found) || /\p{Surrogate}/u.test(before)) {
    throw new UserError(`Line ${number} of ${name} contains an unpaired surrogate.`);
  }
  return { text: found, ...(before !== "" && { prompt: before }), ...aboutText(Object(entry)) };
}

/** A text's entries in the table of an extraction; a prompt is read only with rows of responses. */
export function describedText({ prompt = "", text, id, label, split }: GivenText, rows: RowsRead) {
  const read = rows === "response" ? prompt + text : text;
  const sha256 = createHash("sha256").update(read).digest("hex");
  return { id: id ?? null, label: label ?? null, split: split ?? null, sha256 };
}

/** The fields of an entry that describe its text, if they are strings, numbers or booleans. */
function aboutText(entry: { id?: unknown; label?: unknown; split?: unknown }): Partial<GivenText> {
  return Object.fromEntries(
    (["id", "label", "split"] as const)
      .filter((name) => ["string", "number", "boolean"].includes(typeof entry[name]))
      .map((name) => [name, String(entry[name]).replace(/\p{Surrogate}/gu, "\uFFFD")]),
  );
}
