/** An extraction on a real Slurm cluster of three nodes: a killed part and a lost node change nothing. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { until } from "../../support/until.js";
import { type Cluster, canRunSlurm, startCluster } from "./cluster.js";

const tapline = fileURLToPath(new URL("../../../bin/tapline.js", import.meta.url));
const test = suite<{ folder: string; cluster: Cluster; env: NodeJS.ProcessEnv }>("slurm");

if (canRunSlurm) {
  test.before(async (context) => {
    context.folder = mkdtempSync(join(tmpdir(), "tapline-slurm-"));
    context.cluster = await startCluster(context.folder, 3, 17_800 + (process.pid % 50) * 4);
    // Killed parts leave their temporary Lab's folder.
    mkdirSync(join(context.folder, "tmp"));
    context.env = {
      ...{ ...process.env, ...context.cluster.env },
      ...{ TAPLINE_HOME: join(context.folder, "home"), TMPDIR: join(context.folder, "tmp") },
    };
    // Enough texts that each part takes some seconds: 2,400 of 40 words.
    const words = "the capital of France is Paris and that of Japan is Tokyo".split(" ");
    const text = (n: number) =>
      Array.from({ length: 40 }, (_, i) => words[(n * 7 + i * (1 + (n % 5))) % words.length]);
    writeFileSync(
      join(context.folder, "texts.txt"),
      Array.from({ length: 2400 }, (_, n) => `${n} ${text(n).join(" ")}`).join("\n"),
    );
    extract(context, ["--out", join(context.folder, "whole")]);
  });
  test.after(async ({ folder, cluster }) => {
    await cluster.close();
    rmSync(folder, { recursive: true, force: true });
  });

  interface Place {
    folder: string;
    env: NodeJS.ProcessEnv;
  }

  const words = ({ folder }: Place, more: string[]) => [
    ...[tapline, "extract", "--data", join(folder, "texts.txt"), "--layers", "2,5", "--shard-tokens", "2048"],
    ...["--quiet", "--json", ...more],
  ];
  function extract(place: Place, more: string[]): void {
    execFileSync(process.execPath, words(place, ["--lab", "new", ...more]), {
      env: place.env,
      stdio: "pipe",
    });
  }

  /** Submits in six parts and lets `disturb` run once the first files are there. */
  async function submitted(place: Place, out: string, disturb: () => void): Promise<string> {
    const options = ["--out", out, "--submit", "slurm", "--parts", "6", "--sbatch=--cpus-per-task=1"];
    const child = spawn(process.execPath, words(place, options), {
      env: place.env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    child.stdout.on("data", (chunk) => (said += chunk));
    child.stderr.on("data", (chunk) => (said += chunk));
    const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
    const parts = join(out, "parts");
    await until(
      () => existsSync(parts) && readdirSync(parts).some((name) => name.endsWith("-00000.safetensors")),
    );
    disturb();
    assert.is(await ended, 0, said);
    return said;
  }

  const contents = (path: string) =>
    Object.fromEntries(
      readdirSync(path).map((name) => [name, readFileSync(join(path, name)).toString("base64")]),
    );

  test("a part that is cancelled is submitted again", async (context) => {
    const { folder, env } = context;
    const out = join(folder, "killed");
    await submitted(context, out, () => {
      const [task] = spawnSync("squeue", ["--noheader", "--array", "--states=R", "--format=%i"], { env })
        .stdout.toString()
        .trim()
        .split("\n");
      assert.match(task as string, /^\d+_\d$/);
      spawnSync("scancel", ["--signal=KILL", "--full", task as string], { env });
    });
    assert.equal(contents(out), contents(join(folder, "whole")));
    const [record] = readdirSync(join(folder, "home/submitted"));
    const { batches } = JSON.parse(readFileSync(join(folder, "home/submitted", record as string), "utf8"));
    assert.is(batches.length, 2, "the cancelled part was submitted again");
  });

  test("a node that is lost in the middle loses nothing", async (context) => {
    const { folder, cluster } = context;
    const out = join(folder, "lost");
    const log = () => readFileSync(join(folder, "log/slurmctld.log"), "utf8");
    const before = log().length;
    await submitted(context, out, () => {
      cluster.kill(1);
      setTimeout(() => cluster.restart(1), 15_000).unref();
    });
    assert.equal(contents(out), contents(join(folder, "whole")));
    // Slurm notices it after some seconds; a second run of the slow part, which cancels the first one, may be faster.
    assert.match(log().slice(before), /requeue job|REQUEST_KILL_JOB/i, "the lost part was replaced");
  });
} else {
  test.skip("a Slurm cluster: needs root, slurm-wlm and munge", () => {});
}

test.run();
