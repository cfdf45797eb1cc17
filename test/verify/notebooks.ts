/**
 * Executes the notebooks of docs/notebooks against a Lab: `npm run verify:notebooks`.
 *   --only PATTERN   notebooks whose name matches
 *   --out FOLDER     where the executed ones, with their outputs, are written
 * Jupyter's kernel, NumPy and pandas live in a separate environment in the cache (test/support/real).
 */
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startLab } from "../../src/lab/index.js";
import { clientSources } from "../clients/support/python.js";
import { compiledWorker } from "../support/program.js";
import { runProgram } from "../support/real/cache.js";
import { environment } from "../support/real/environments.js";
import { smolLm2Model } from "../support/real/models.js";

const folder = fileURLToPath(new URL("../../docs/notebooks/", import.meta.url));
const script = fileURLToPath(new URL("./notebooks.py", import.meta.url));

/** The required output of a notebook, and the one model that is not the embedded one. */
const wanted: Record<string, { shows: RegExp[]; real?: boolean }> = {
  // The lens of the last block names the answer; the table is pandas'.
  "first-look.ipynb": { shows: [/<svg.*Paris.*<\/svg>/s, /<table.*Paris.*<\/table>/s, /\(1, 6, 128\)/] },
  "steer-and-measure.ipynb": { shows: [/<svg.*<polyline.*<\/svg>/s, /<table.*control\.probability/s] },
  "probe-with-controls.ipynb": {
    shows: [
      /<svg.*shuffled labels.*<\/svg>/s,
      /<table.*shuffled_labels\.accuracy\.mean/s,
      /I think the (concert|hotel|lecture)/,
    ],
    real: true,
  },
};

interface Ran {
  cells: number;
  kept: number;
  shown: Array<Record<string, string>>;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { only: { type: "string", default: "" }, out: { type: "string" } },
  });
  const names = (await readdir(folder)).filter((name) => name.endsWith(".ipynb"));
  const python = await environment("notebooks");
  const home = await mkdtemp(join(tmpdir(), "tapline-notebooks-"));
  const lab = await startLab({ port: 0, home, backend: "cpu", ...compiledWorker });
  let [passed, failed] = [0, 0];
  try {
    for (const name of names.filter((each) => new RegExp(values.only).test(each))) {
      const begin = performance.now();
      const complaint = await check(name, python, lab.url, values.out).catch((error: Error) => error.message);
      if (complaint === undefined) passed++;
      else failed++;
      console.log(`${name}: ${complaint ?? "ran"} (${((performance.now() - begin) / 1000).toFixed(1)} s)`);
    }
    const unknown = Object.keys(wanted).filter((name) => !names.includes(name));
    for (const name of unknown) console.log(`${name} is not in docs/notebooks.`);
    failed += unknown.length;
  } finally {
    await lab.close();
    await rm(home, { recursive: true, force: true });
  }
  console.log(`\n${passed} passed, ${failed} failed`);
  if (failed > 0 || passed === 0) process.exitCode = 1;
}

/** The problem of a notebook, in a sentence; undefined where it is fine. */
async function check(
  name: string,
  python: string,
  url: string,
  out: string | undefined,
): Promise<string | undefined> {
  const expected = wanted[name];
  if (expected === undefined) return "no check says what it has to show";
  if (out !== undefined) await mkdir(out, { recursive: true });
  const executed = out === undefined ? [] : [resolve(out, name)];
  const said = await runProgram(python, ["-B", script, join(folder, name), ...executed], {
    TAPLINE_LAB: url,
    PYTHONPATH: clientSources.join(":"),
    ...(expected.real === true ? { TAPLINE_MODEL: (await smolLm2Model()).q4_1 } : {}),
  });
  const { cells, kept, shown } = JSON.parse(said.trim().split("\n").at(-1) as string) as Ran;
  if (kept > 0) return `${kept} of its cells keep outputs; notebooks are committed without`;
  if (shown.length < cells - 1) return `of ${cells} cells only ${shown.length} show something`;
  const all = shown.flatMap((each) => Object.values(each));
  const missing = expected.shows.find((pattern) => !all.some((text) => pattern.test(text)));
  return missing === undefined ? undefined : `nothing that it shows matches ${missing}`;
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
