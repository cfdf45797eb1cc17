import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type ContextOptions, Model, threadsFor } from "../../src/native/index.js";
import { module, moduleAt } from "../support/program.js";
import { until } from "../support/until.js";
import { demo, someTokens } from "./demo-model.js";

const onLinux = process.platform === "linux" ? test : test.skip;
const threads = () => readdirSync("/proc/self/task").length;

/** The number of remaining threads: a joined thread is listed for a moment longer. */
async function lasting(): Promise<number> {
  for (let [before, now] = [-1, threads()]; ; [before, now] = [now, threads()]) {
    if (before === now) return now;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test("by default, only models below 40 MB are computed with one thread", () => {
  assert.equal([3_000_000, 39_999_999, 40_000_000, 5e11].map(threadsFor), [1, 1, undefined, undefined]);
});

onLinux("a context of the embedded model starts no thread, unless two are requested", async () => {
  await readFile(demo); // Node's own threads for files begin with the first
  const model = await Model.open(demo);
  const begun = async (options: ContextOptions) => {
    const before = await lasting();
    const context = await model.createContext({ nCtx: 64, ...options });
    await context.advance({ tokens: someTokens(20, model.info.nVocab), layers: [0] });
    await context.close();
    return (await lasting()) - before;
  };
  assert.equal(
    [await begun({}), await begun({ threads: undefined }), await begun({ threads: 2 })],
    [0, 0, 1],
  );
  await model.close();
});

onLinux("threads that helped out end; operations one after the other need one", async () => {
  await readFile(demo); // Node's own threads for files begin with the first
  const model = await Model.open(demo);
  const context = await model.createContext({ threads: 2, nCtx: 64 });
  const tokens = someTokens(20, model.info.nVocab);
  const pass = async () => {
    await context.reset();
    await context.advance({ tokens, layers: [0] });
  };
  await pass();
  const alone = await lasting();
  const texts = Array.from({ length: 12 }, () => "many words ".repeat(500));
  await Promise.all(texts.map((text) => model.tokenize(text)));
  await until(() => threads() <= alone, "the threads that helped out end");
  const seen = new Set<number>();
  for (let i = 0; i < 20; i++) {
    await pass();
    seen.add(threads());
  }
  assert.ok(Math.max(...seen) <= alone, `${[...seen]} threads, ${alone} before`);
  await context.close();
  await model.close();
});

onLinux("threads at a barrier sleep soon, unless the environment sets a time", () => {
  const program = `
    const { backendInfo } = await import(${JSON.stringify(pathToFileURL(moduleAt("native/index")).href)});
    backendInfo();
    console.log(String(process.env.GOMP_SPINCOUNT));
  `;
  const run = (set: Record<string, string>) => {
    const { GOMP_SPINCOUNT: _, OMP_WAIT_POLICY: __, ...rest } = process.env;
    const env = { ...rest, OMP_DISPLAY_ENV: "verbose", ...set };
    const args = [...module, "--input-type=module", "-e", program];
    const { stdout, stderr } = spawnSync(process.execPath, args, { env, encoding: "utf8" });
    return [/GOMP_SPINCOUNT = '(\d+)'/.exec(stderr)?.[1], stdout.trim()];
  };
  assert.equal(run({}), ["4000", "undefined"]);
  assert.equal(run({ GOMP_SPINCOUNT: "77" }), ["77", "77"]);
});

test.run();
