/** What engines run, as scripts, and the processes of the local one. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { localEngine } from "../../src/submit/local.js";
import { slurmEngine } from "../../src/submit/slurm.js";
import { prepareFolder, type Submission } from "../../src/submit/submission.js";
import { until } from "../support/until.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-engines-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const submission = (more: Partial<Submission> = {}): Submission => ({
  ...{
    id: "s-01234567",
    submitted: "2026-11-27T00:00:00.000Z",
    engine: "local",
    settings: { model: "demo" },
  },
  ...{ out: "/data/rows", parts: 3, workers: 2, engineOptions: [], batches: [], stopped: false },
  ...more,
});

test("a Slurm array has one task per part and the given options", () => {
  const script = slurmEngine(["node", "tap line.js"]).script(
    submission({ engine: "slurm", engineOptions: ["--gres=gpu:1", "--time=2:00:00"] }),
  );
  assert.is(
    script,
    [
      "# sbatch --array=0,1,2%2 --output=/data/rows/parts/part-%a.log <this script>",
      "#!/bin/bash",
      "#SBATCH --job-name=tapline-s-01234567",
      "#SBATCH --requeue",
      "#SBATCH --open-mode=append",
      "#SBATCH --gres=gpu:1",
      "#SBATCH --time=2:00:00",
      ': >/data/rows/parts/part-"$SLURM_ARRAY_TASK_ID".started',
      "exec node 'tap line.js' extract --config /data/rows/parts/extract.json --lab new --quiet --json --out /data/rows/parts --shard \"$SLURM_ARRAY_TASK_ID/3\"",
      "",
    ].join("\n"),
  );
});

test("local workers have a device each and take parts from one queue", () => {
  const lines = localEngine(["tapline"])
    .script(submission({ parts: 5, engineOptions: ["0", "3"] }))
    .split("\n");
  assert.equal(lines.slice(0, 4), [
    "# Parts 0, 1, 2, 3 and 4 wait in /data/rows/parts/queue.",
    "# CUDA_VISIBLE_DEVICES=0 bash <this script>",
    "# CUDA_VISIBLE_DEVICES=3 bash <this script>",
    "#!/bin/bash",
  ]);
});

/** A program that stands for tapline: it notes its words in `said`, then runs a command. */
function standIn(name: string, command: string) {
  const path = join(folder, `${name}.sh`);
  const notes = join(folder, `${name}.said`);
  writeFileSync(path, `#!/bin/bash\necho "$@" >>${notes}\n${command}\n`, { mode: 0o755 });
  const said = () => (existsSync(notes) ? readFileSync(notes, "utf8").trim().split("\n") : []);
  return { program: [path], said, parts: () => said().map((line) => line.split("--shard ")[1]) };
}

async function prepared(name: string, more: Partial<Submission>, program: readonly string[]) {
  const own = submission({ out: join(folder, name), ...more });
  await prepareFolder(own);
  const engine = localEngine(program);
  const start = async (parts: number[], copies?: boolean) => {
    const handle = await engine.start(own, parts, copies);
    own.batches.push({ handle, parts, ...(copies && { copy: true as const }) });
    return (JSON.parse(handle) as { place: number }[]).map(({ place }) => place);
  };
  return { own, engine, start };
}

test("new local workers get places that no other has, second runs separate folders", async () => {
  const { program, parts } = standIn("waits", "exec sleep 300");
  const { own, engine, start } = await prepared("places", { parts: 4, workers: 3 }, program);
  try {
    assert.equal(await start([0, 1]), [0, 1]);
    assert.is(await engine.busy(own), 2);
    await until(() => parts().length === 2);
    assert.equal(await start([1], true), [2]);
    await until(() => parts().length === 3);
    const script = readFileSync(join(own.out, "parts/extract-copy.sh"), "utf8");
    assert.match(
      script,
      `--out ${own.out}/parts/copy-"$part" --shard "$part/4" >>${own.out}/parts/part-"$part"-copy.log`,
    );
    assert.equal(await start([2]), [], "it waits for one of the three workers");
    assert.equal([...(await engine.active(own))].sort(), [0, 1, 2]);
    // Either of the two workers may have been the first to take a part.
    const claim = readdirSync(join(own.out, "parts/queue")).find((name) => name.startsWith("1."));
    const workers = JSON.parse(own.batches[0]?.handle as string) as { pid: number; place: number }[];
    const stopped = workers.find(({ pid }) => claim === `1.${pid}`)?.place;
    await engine.stop({ batches: own.batches.slice(0, 1) }, [1]);
    assert.equal([...(await engine.active({ batches: own.batches.slice(0, 1) }))].sort(), [0, 2]);
    assert.equal([...(await engine.active(own))].sort(), [0, 1, 2], "the second run is not stopped");
    assert.equal(await start([1, 3]), [stopped], "the place of the stopped worker");
    await until(() => parts().length === 4);
    assert.equal([...(await engine.active(own))].sort(), [0, 1, 2, 3]);
    assert.is(parts().at(-1), "1/4", "the first waiting part");
    await engine.stop(own, [3]);
    assert.equal([...(await engine.active(own))].sort(), [0, 1, 2], "a part that waits no longer does");
  } finally {
    await engine.stop(own);
  }
  assert.is(await engine.busy(own), 0);
  assert.is((await engine.active(own)).size, 0);
});

test("an idle local worker takes the next part, however long the others take", async () => {
  // Part 0 takes until the test is over, the others no time.
  const { program, parts } = standIn("uneven", 'case "$*" in *"--shard 0/6"*) exec sleep 300 ;; esac');
  const { own, engine, start } = await prepared("uneven", { parts: 6 }, program);
  try {
    assert.equal(await start([0, 1, 2, 3, 4, 5]), [0, 1]);
    await until(async () => (await engine.busy(own)) === 1);
    assert.equal(parts().sort(), ["0/6", "1/6", "2/6", "3/6", "4/6", "5/6"]);
    assert.equal([...(await engine.active(own))], [0]);
  } finally {
    await engine.stop(own);
  }
});

test("many local workers take each part once", async () => {
  const { program, parts } = standIn("many", "");
  const { own, engine, start } = await prepared("many", { parts: 60, workers: 6 }, program);
  await start(Array.from({ length: 60 }, (_, part) => part));
  await until(async () => (await engine.busy(own)) === 0);
  const numbers = parts().map((part) => Number(part?.split("/")[0]));
  assert.equal(
    numbers.sort((a, b) => a - b),
    [...Array(60).keys()],
  );
});

test("a killed local worker's part starts again; it is not active meanwhile", async () => {
  const { program, parts } = standIn("killed", "exec sleep 300");
  const { own, engine, start } = await prepared("killed", { workers: 1 }, program);
  try {
    await start([0, 1]);
    await until(() => parts().length === 1);
    const [{ pid }] = JSON.parse(own.batches[0]?.handle as string);
    process.kill(-pid, "SIGKILL");
    await until(async () => (await engine.busy(own)) === 0);
    assert.is((await engine.active(own)).size, 0);
    assert.equal(await start([0, 1]), [0]);
    await until(() => parts().length === 2);
    assert.equal(parts(), ["0/3", "0/3"]);
    const queue = readdirSync(join(own.out, "parts/queue")).filter((name) => name.startsWith("0"));
    assert.equal(queue, [`0.${JSON.parse(own.batches[1]?.handle as string)[0].pid}`], "one claim");
    assert.equal([...(await engine.active(own))].sort(), [0, 1]);
  } finally {
    await engine.stop(own);
  }
});

test("a local worker outlives its starter, is seen while it runs, and is stopped with its child", async () => {
  const { program, said } = standIn("outlives", "exec sleep 300");
  const { own, engine, start } = await prepared("it's rows", {}, program);
  assert.equal([...(await engine.active(own))], []);
  await start([0, 2, 1]);
  assert.equal([...(await engine.active(own))].sort(), [0, 1, 2]);
  await until(() => said().length === 2);
  assert.equal(
    said().sort(),
    [0, 1].map(
      (part) =>
        `extract --config ${own.out}/parts/extract.json --lab new --quiet --json --out ${own.out}/parts --shard ${part}/3`,
    ),
  );
  // Another process that has got a worker's id is none.
  const [handle] = own.batches.map(({ handle }) => handle) as [string];
  const reused = {
    ...own,
    batches: [{ handle: handle.replace(/"started":"\d+"/g, '"started":"1"'), parts: [0, 1, 2] }],
  };
  assert.equal([...(await engine.active(reused))], []);
  await engine.stop(reused);
  assert.is((await engine.active(own)).size, 3, "and not stopped");
  await engine.stop(own);
  await until(async () => (await engine.active(own)).size === 0);
});

test("a folder that cannot be made is refused", async () => {
  const { refusal } = await import("../support/refusal.js");
  assert.is(
    await refusal(() => prepareFolder(submission({ out: "/proc/none/rows" }))),
    "Cannot write to /proc/none/rows (ENOENT).",
  );
});

test.run();
