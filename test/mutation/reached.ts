/** Which places of the sources a run of a test reached, from the coverage that Node writes (NODE_V8_COVERAGE). */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

interface Coverage {
  result: { url: string; functions: { ranges: Range[] }[] }[];
  "source-map-cache"?: Record<string, { lineLengths: number[]; data: { mappings: string } | null }>;
}

interface Range {
  startOffset: number;
  endOffset: number;
  count: number;
}

/** One compiled script of one process. */
interface Script {
  ranges: Range[];
  lineLengths: readonly number[];
  mappings: string;
}

export class Reached {
  readonly #scripts = new Map<string, Script[]>();
  readonly #points = new Map<Script, { line: number; column: number; offset: number }[]>();

  /** Reads what the processes of one run left in a folder. */
  constructor(folder: string) {
    for (const name of readdirSync(folder)) {
      const { result, "source-map-cache": maps = {} } = read(join(folder, name));
      for (const { url, functions } of result) {
        const map = maps[url];
        if (!map?.data) continue;
        const ranges = functions.flatMap((each) => each.ranges);
        const script = { ranges, lineLengths: map.lineLengths, mappings: map.data.mappings };
        const source = url.replace(/\.js$/, ".ts"); // the JavaScript is next to it
        this.#scripts.set(source, [...(this.#scripts.get(source) ?? []), script]);
      }
    }
  }

  /** Whether any process ran the code at an offset of a source file. */
  has(file: string, source: string, at: number): boolean {
    const before = source.slice(0, at);
    const line = before.split("\n").length - 1;
    const column = at - (before.lastIndexOf("\n") + 1);
    return (this.#scripts.get(pathToFileURL(file).href) ?? []).some((script) => {
      const points = this.#points.get(script) ?? decode(script);
      this.#points.set(script, points);
      const offset = points.findLast((p) => p.line < line || (p.line === line && p.column <= column))?.offset;
      return offset === undefined || countAt(script.ranges, offset) > 0;
    });
  }
}

function read(file: string): Coverage {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Coverage;
  } catch {
    return { result: [] }; // its process was ended while it wrote
  }
}

/** How often the innermost range that holds an offset was run. */
function countAt(ranges: readonly Range[], offset: number): number {
  let best: Range | undefined;
  for (const range of ranges) {
    const holds = range.startOffset <= offset && offset < range.endOffset;
    const length = range.endOffset - range.startOffset;
    if (holds && (best === undefined || length <= best.endOffset - best.startOffset)) best = range;
  }
  return best?.count ?? 1;
}

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** The segments of a source map, by their place in the source: where in the compiled text each begins. */
function decode({ lineLengths, mappings }: Script): { line: number; column: number; offset: number }[] {
  const points: { line: number; column: number; offset: number }[] = [];
  let [begin, line, column] = [0, 0, 0];
  for (const [index, text] of mappings.split(";").entries()) {
    let offset = begin;
    for (const segment of text.split(",")) {
      const fields = numbers(segment);
      offset += fields[0] ?? 0;
      if (fields.length < 4) continue;
      line += fields[2] as number;
      column += fields[3] as number;
      points.push({ line, column, offset });
    }
    begin += (lineLengths[index] ?? 0) + 1;
  }
  return points.sort((a, b) => a.line - b.line || a.column - b.column);
}

/** Base64 VLQ: five bits a digit, the lowest first; the lowest bit of a number is its sign. */
function numbers(text: string): number[] {
  const found: number[] = [];
  let [value, shift] = [0, 0];
  for (const character of text) {
    const digit = digits.indexOf(character);
    value += (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    found.push(value & 1 ? -(value >>> 1) : value >>> 1);
    [value, shift] = [0, 0];
  }
  return found;
}
