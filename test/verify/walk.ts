/**
 * Pastes every block of README and docs as it stands, page by page, into a fresh clone: `npm run verify:walk`. A block
 * fails that ends with an error, shows one, or shows nothing.
 *   --only PATTERN   pages whose path matches
 *   --jobs N         pages at the same time (default: 2 where each can have a separate network, else 1)
 *   --verbose        what each block has shown
 * Two things stand for what they would take minutes for: the build of this checkout for the reader's `npm ci`, and the
 * Python clients' sources for their `pip install`.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { isCompiled } from "../../scripts/build/compiled.js";
import { pythonWith } from "../support/python.js";
import { claims } from "./walk/claims.js";
import { type Exception, exceptions } from "./walk/exceptions.js";
import { type Block, blocksOf, filesOf, pagesOf } from "./walk/pages.js";
import { cloneTo, ownNetwork, type Pasted, Reader } from "./walk/reader.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

interface Tally {
  passed: number;
  failed: number;
  lines: string[];
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      only: { type: "string", default: "" },
      jobs: { type: "string", default: ownNetwork ? "2" : "1" },
      verbose: { type: "boolean", default: false },
    },
  });
  if (!isCompiled()) throw new Error("dist/ is not the present sources': npm run build");
  const python = pythonWith("numpy");
  if (python === undefined)
    throw new Error("The pages' programs need a Python 3 with NumPy; TAPLINE_PYTHON names one.");
  const files = filesOf(root);
  const pages = pagesOf(files).map((page) => ({ page, blocks: blocksOf(root, page) }));
  const stale = exceptions.filter(({ page, begins }) => {
    return !pages.some((one) => one.page === page && one.blocks.some(({ text }) => text.startsWith(begins)));
  });
  const waiting = pages.filter(({ page, blocks }) => {
    return (
      new RegExp(values.only).test(page) && blocks.some((block) => exceptionOf(page, block) === undefined)
    );
  });
  const total = { passed: 0, failed: stale.length };
  for (const { page, begins } of stale) console.log(`${page}: no block begins with “${begins}” any more`);
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const begin = performance.now();
      const { passed, failed, lines } = await walk(next.page, next.blocks, files, python, values.verbose);
      total.passed += passed;
      total.failed += failed;
      const seconds = ((performance.now() - begin) / 1000).toFixed(1);
      console.log(
        [`${next.page}: ${passed} of ${next.blocks.length} blocks (${seconds} s)`, ...lines].join("\n"),
      );
    }
  };
  await Promise.all(Array.from({ length: Number(values.jobs) }, worker));
  console.log(`\n${exceptions.length} blocks are not pasted:`);
  for (const { page, begins, why } of exceptions) console.log(`  ${page}, ${begins} …: needs ${why}`);
  console.log(`\n${total.passed} passed, ${total.failed} failed`);
  if (total.failed > 0 || total.passed === 0) process.exitCode = 1;
}

function exceptionOf(page: string, { text }: Block): Exception | undefined {
  return exceptions.find((one) => one.page === page && text.startsWith(one.begins));
}

async function walk(
  page: string,
  blocks: readonly Block[],
  files: readonly string[],
  python: string,
  verbose: boolean,
): Promise<Tally> {
  const tally: Tally = { passed: 0, failed: 0, lines: [] };
  const folder = mkdtempSync(join(tmpdir(), "tapline-walk-"));
  cloneTo(folder, root, files);
  const reader = new Reader(folder, python);
  let shown = "";
  try {
    for (const block of blocks) {
      if (exceptionOf(page, block) !== undefined) continue;
      const pasted = await reader.paste(block);
      shown += pasted.output;
      const fault = faultOf(block, pasted);
      const said = pasted.output.trimEnd().replace(/^/gm, "    ");
      if (verbose) tally.lines.push(`  ${page}:${block.line}`, said);
      if (fault === undefined) tally.passed++;
      else {
        tally.failed++;
        tally.lines.push(`  ${page}:${block.line}: ${fault}`, ...(verbose ? [] : [said]));
        if (pasted.code !== 0) {
          tally.lines.push("  The blocks after it were not pasted.");
          return tally;
        }
      }
    }
    claims[page]?.(shown, join(folder, "tapline"));
  } catch (error) {
    tally.failed++;
    tally.lines.push(`  What the page says is not so: ${error instanceof Error ? error.message : error}`);
  } finally {
    await reader.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return tally;
}

/** curl ends with 0 whatever the service answers, and a pipe may swallow everything. */
function faultOf({ language, text }: Block, { code, output }: Pasted): string | undefined {
  if (language === "sh fails") return code === 0 ? "it should have failed" : undefined;
  if (code !== 0) return `it ended with ${code}`;
  const error = /^.*(\{"error"|^\w*Error: |^tapline: .*(fail|cannot)|command not found).*$/m.exec(output);
  if (error !== null) return `it showed an error: ${error[0]}`;
  const intoFile = / > \S+$|^curl -sO/m.test(text.trim().split("\n").at(-1) as string);
  return output.trim() === "" && !intoFile ? "it showed nothing" : undefined;
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
