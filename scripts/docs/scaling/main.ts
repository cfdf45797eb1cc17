/**
 * Writes the tables of "A thousand workers" in docs/scaling.md: `npm run docs:scaling`. The first is arithmetic, the second a
 * simulation with a fixed seed.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { bytesText } from "../../../src/text/words.js";
import { type Cluster, simulate } from "./simulate.js";

export const scalingPage = fileURLToPath(new URL("../../../docs/scaling.md", import.meta.url));

const work = {
  ...{ workers: 1000, parts: 1000, texts: 10_000_000, textTokens: 1000, textBytes: 4000 },
  // Of one layer in bfloat16.
  ...{ rate: 10_000, rowBytes: 2 * 4096 },
} as const;
const tokens = work.texts * work.textTokens;
/** Of an index: `index.json` per file, `index.parquet` per text. */
const [indexBytes, tableBytes] = [250, 70];
/** List prices of object storage in dollars: per GB and month, per 1,000 uploads, per 1,000 downloads. */
const prices = { month: 0.023, uploads: 0.005, downloads: 0.0004 };

/** Files of a part: each has whole texts, of at most that many tokens. */
function filesOf(shardTokens: number) {
  const texts = Math.floor(shardTokens / work.textTokens);
  const count = Math.ceil(work.texts / work.parts / texts);
  return { count, bytes: texts * work.textTokens * work.rowBytes };
}

const number = (value: number) => Math.round(value).toLocaleString("en-US");
const rounded = (value: number) => number(Number(value.toPrecision(2)));
const dollars = (value: number) => `$${value < 10 ? value.toFixed(2) : rounded(value)}`;
const perSecond = (bytes: number) => `${bytesText(bytes)}/s`;

function arithmetic(): string[][] {
  const perPart = tokens / work.parts;
  const seconds = perPart / work.rate;
  const [bytes, all] = [perPart * work.rowBytes, tokens * work.rowBytes];
  const speed = work.rate * work.rowBytes;
  const data = work.texts * work.textBytes;
  const [small, large] = [filesOf(32_768), filesOf(1_048_576)];
  const uploads = small.count * work.parts;
  return [
    ["", "per part", "all parts", "bottleneck"],
    [
      "computing",
      `${Math.round(seconds / 60)} minutes`,
      `${rounded((seconds * work.parts) / 3600)} hours of workers`,
      "",
    ],
    ["start", "2 s, and loading the model", "", "none, if each part takes a few minutes"],
    [
      "activations",
      `${bytesText(bytes)}, at ${perSecond(speed)}`,
      `${bytesText(all)}, at ${perSecond(speed * work.workers)}`,
      "**the file system, first of all**",
    ],
    [
      "files of `--shard-tokens 32768`",
      `${small.count} of ${bytesText(small.bytes)}`,
      number(uploads),
      "metadata: `tapline jobs --submitted` and following look at every file",
    ],
    [
      "files of `--shard-tokens 1048576`",
      `${large.count} of up to ${bytesText(large.bytes)}`,
      number(large.count * work.parts),
      `a part that restarts repeats up to ${Math.round(1_048_576 / work.rate)} s`,
    ],
    ["`index.json`", bytesText(small.count * indexBytes), bytesText(uploads * indexBytes), ""],
    [
      "`index.parquet`",
      bytesText((work.texts / work.parts) * tableBytes),
      bytesText(work.texts * tableBytes),
      "",
    ],
    [
      "the data, read once by each part",
      bytesText(data),
      bytesText(data * work.parts),
      "the file system: divide the data into ten files, and submit each in 100 parts",
    ],
    [
      "merging",
      "",
      `${bytesText(all)} read and written by one process: ${Math.round(all / 1e9 / 3600)} hours at 1 GB/s`,
      "**do not merge:** use `--detach`, and read the folder `parts`",
    ],
    [
      `object storage at $${prices.month} per GB and month`,
      "",
      `${dollars((all / 1e9) * prices.month)} per month; ${dollars((uploads / 1000) * prices.uploads)} for ${number(uploads)} uploads at ` +
        `$${prices.uploads} per 1,000, ${dollars((uploads / 1000) * prices.downloads)} for reading them back`,
      `the network: ${bytesText(2 * all)} in both directions`,
    ],
  ];
}

const usual: Omit<Cluster, "parts" | "secondRuns" | "fileTokens"> = {
  ...{ workers: work.workers, tokens, rate: work.rate, start: 30, spread: 0.05 },
  ...{ slow: { share: 0.01, factor: 3 }, failure: { hours: 1000, repair: 600 }, seed: 1 },
};

function simulated(): string[][] {
  const row = (parts: number, secondRuns: boolean, fileTokens: number) => {
    const found = simulate({ ...usual, parts, secondRuns, fileTokens });
    return [
      `${number(parts)}${secondRuns ? "" : ", no second runs"}`,
      number(fileTokens),
      `${(found.seconds / 60).toFixed(1)} minutes`,
      `${(100 * found.efficiency).toFixed(0)} %`,
      `${found.secondRuns}`,
      `${((100 * found.repeated) / tokens).toFixed(2)} %`,
    ];
  };
  return [
    ["parts", "tokens per file", "until all are complete", "efficiency", "second runs", "computed twice"],
    row(1000, false, 32_768),
    row(1000, true, 32_768),
    row(1000, true, 1_048_576),
    row(4000, false, 32_768),
    row(4000, true, 32_768),
  ];
}

const lineOf = (cells: readonly string[]) => `| ${cells.join(" | ")} |`.replaceAll("|  |", "| |");

/** The page with these tables: each replaces the one with the same first line. */
export function withTables(page: string): string {
  let lines = page.split("\n");
  for (const [head, ...rows] of [arithmetic(), simulated()] as [string[], ...string[][]][]) {
    const first = lines.indexOf(lineOf(head));
    if (first === -1) throw new Error(`docs/scaling.md has no table that starts with ${lineOf(head)}`);
    const end = lines.findIndex((line, at) => at > first && !line.startsWith("|"));
    const table = [lineOf(head), lineOf(head.map(() => "---")), ...rows.map(lineOf)];
    lines = [...lines.slice(0, first), ...table, ...lines.slice(end)];
  }
  return lines.join("\n");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(scalingPage, withTables(readFileSync(scalingPage, "utf8")));
}
