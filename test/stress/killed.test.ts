import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { tapline } from "../cli/run.js";
import { module, moduleAt, program } from "../support/program.js";
import { until } from "../support/until.js";

// Hours of work that are killed: the next run continues from the files on disk, and the result shows no difference.

const folder = mkdtempSync(join(tmpdir(), "tapline-killed-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const layer = 5;
const words = ["capital", "film", "book", "trip", "river", "teacher", "garden", "letter"];
const data = join(folder, "texts.txt");
writeFileSync(
  data,
  Array.from({ length: 100 }, (_, i) => {
    const [one, other] = [words[i % 8], words[(i * 3 + 1) % 8]];
    return `The ${one} of the ${other} was ${i % 2 === 0 ? "good" : "not good"}, number ${i}.`;
  }).join("\n"),
);
const extraction = (out: string) => [
  ...["extract", "--lab", "new", "--data", data, "--layers", String(layer), "--shard-tokens", "256"],
  ...["--out", out, "--quiet"],
];

/** Names below a folder, less locks. */
function files(path: string): string[] {
  return (readdirSync(path, { recursive: true }) as string[])
    .filter((name) => !name.endsWith(".lock") && statSync(join(path, name)).isFile())
    .sort();
}

function assertSame(path: string, whole: string): void {
  assert.equal(files(path), files(whole));
  for (const name of files(whole)) {
    if (name.endsWith(".json")) {
      const [found, wanted] = [path, whole].map((at) => JSON.parse(readFileSync(join(at, name), "utf8")));
      assert.equal(found, wanted, name);
      continue;
    }
    assert.ok(readFileSync(join(path, name)).equals(readFileSync(join(whole, name))), name);
  }
}

/** Starts a command in a separate process group, which ends with everything in it as by a power cut. */
async function killed(
  command: readonly string[],
  { preload, when }: { preload?: string; when?: () => boolean },
): Promise<void> {
  const options =
    preload === undefined ? [] : [`--import=data:text/javascript,${encodeURIComponent(preload)}`];
  const child = spawn(process.execPath, [...program, ...command], {
    ...{ detached: true, stdio: "ignore" },
    env: { ...process.env, TMPDIR: folder, NODE_OPTIONS: options.join(" ") },
  });
  const ended = once(child, "close");
  let over = false;
  ended.then(() => {
    over = true;
  });
  while (when !== undefined && !over && !when()) await sleep(5);
  if (when !== undefined && !over) process.kill(-(child.pid as number), "SIGKILL");
  const [, signal] = (await ended) as [number | null, string | null];
  assert.is(signal, "SIGKILL", "it ended by itself before it was killed");
  await until(() => !lives(child.pid as number), "all of its processes are gone");
}

/** Whether a process of this group still runs: an unreaped zombie does not. */
function lives(group: number): boolean {
  if (process.platform !== "linux") return false;
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .some((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
        const [state, , its] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        return Number(its) === group && state !== "Z";
      } catch {
        return false;
      }
    });
}

/** Kills the worker and its service where a finished file is about to get its name. */
const killAtThirdShard = `
  import promises from "node:fs/promises";
  import { syncBuiltinESMExports } from "node:module";
  const { rename } = promises;
  promises.rename = (from, to) => {
    if (String(to).endsWith("shard-00002.safetensors")) {
      process.kill(process.ppid, "SIGKILL");
      process.kill(process.pid, "SIGKILL");
    }
    return rename(from, to);
  };
  syncBuiltinESMExports();`;

const whole = join(folder, "rows");

test("an extraction killed at any point resumes after its finished files", async () => {
  const ran = await tapline(extraction(whole));
  assert.is(ran.code, 0, ran.stderr);
  const shards = files(whole).filter((name) => name.startsWith("shard"));
  assert.ok(shards.length > 3, `${shards.length} files`);
  const out = join(folder, "killed-rows");
  await killed(extraction(out), { preload: killAtThirdShard });
  const kept = files(out).filter((name) => name.endsWith(".safetensors"));
  assert.equal(kept, shards.slice(0, 2));
  const known = kept.map((name) => statSync(join(out, name), { bigint: true }).mtimeNs);
  const again = await tapline(extraction(out));
  assert.is(again.code, 0, again.stderr);
  assert.equal(
    kept.map((name) => statSync(join(out, name), { bigint: true }).mtimeNs),
    known,
    "finished files are not written again",
  );
  assertSame(out, whole);
});

/** Trains until this many steps are done, and then ends its process as a power cut would. */
async function trainUntilKilled(out: string, step: number, more: object = {}): Promise<void> {
  const body = `
    const { trainFromExtraction } = await import(${JSON.stringify(moduleAt("lab/training/from-extraction"))});
    const settings = ${JSON.stringify({ ...settings, from: whole, layers: [layer], ...more })};
    await trainFromExtraction(settings, ${JSON.stringify(out)}, {
      checkpointSeconds: 0,
      progress: ({ done }) => { if (done >= ${step}) process.kill(process.pid, "SIGKILL"); },
    });`;
  const child = spawn(process.execPath, [...module, "--input-type=module", "-e", body], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk) => {
    said += chunk;
  });
  const [, signal] = (await once(child, "close")) as [number | null, string | null];
  assert.is(signal, "SIGKILL", said);
}

const settings = { architecture: "topk", k: 4, features: 64, steps: 300, batch: 64, seed: 3 } as const;
const training = (out: string) => [
  ...["sae", "--from", whole, "--layers", String(layer), "--out", out, "--quiet"],
  ...["--architecture", "topk", "--k", "4", "--features", "64", "--steps", "300", "--batch", "64"],
  ...["--seed", "3"],
];

test("a training killed repeatedly resumes from its checkpoint with equal files", async () => {
  const unbroken = join(folder, "dictionary");
  const ran = await tapline(training(unbroken));
  assert.is(ran.code, 0, ran.stderr);
  const out = join(folder, "killed-dictionary");
  const checkpoint = join(out, `checkpoint-layer-${layer}.safetensors`);
  await trainUntilKilled(out, 1);
  assert.not.ok(existsSync(checkpoint), "before the first one it starts again");
  for (const step of [100, 250]) {
    await trainUntilKilled(out, step);
    assert.ok(existsSync(checkpoint));
    // The leftovers of a kill in the middle of a write.
    writeFileSync(`${checkpoint}.${"ab".repeat(6)}.tmp`, "half");
    writeFileSync(join(out, `sae-layer-${layer}.safetensors.partial`), "half");
  }
  const again = await tapline(training(out));
  assert.is(again.code, 0, again.stderr);
  assertSame(out, unbroken);
});

test("a killed training of a transcoder resumes with equal files", async () => {
  const both = join(folder, "both-points");
  const extracted = await tapline([...extraction(both), "--point", "ffn_in", "--target", "ffn_out"]);
  assert.is(extracted.code, 0, extracted.stderr);
  const more = { from: both, target: "ffn_out", skip: true };
  const command = (out: string) =>
    training(out)
      .map((word) => (word === whole ? both : word))
      .concat("--target", "ffn_out", "--skip");
  const unbroken = join(folder, "transcoder");
  const ran = await tapline(command(unbroken));
  assert.is(ran.code, 0, ran.stderr);
  assert.equal(files(unbroken), [
    ...[`sae-layer-${layer}.safetensors`, `sae-normalization-${layer}.npz`, "sae.json"],
  ]);
  const out = join(folder, "killed-transcoder");
  for (const step of [100, 250]) {
    await trainUntilKilled(out, step, more);
    assert.ok(existsSync(join(out, `checkpoint-layer-${layer}.safetensors`)));
  }
  const again = await tapline(command(out));
  assert.is(again.code, 0, again.stderr);
  assertSame(out, unbroken);
});

test("the command itself, killed before its first checkpoint", async () => {
  const out = join(folder, "killed-command");
  const long = training(out).map((word) => (word === "300" ? "200000" : word));
  await killed(long, { when: () => existsSync(join(out, "sae.json")) });
  // Its folder says which training it is; another one is refused, and nothing is lost of it.
  const other = await tapline(training(out));
  assert.is(other.code, 1);
  assert.match(other.stderr, /contains a different training: steps is 200000 there and 300 here\./);
  assert.equal(files(out), ["sae.json"]);
});

test.run();
