/** What engines run, as scripts, and the processes of the local one. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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

test("local workers take turns at the parts, each on its device", () => {
  const lines = localEngine(["tapline"])
    .script(submission({ parts: 5, engineOptions: ["0", "3"] }))
    .split("\n");
  assert.equal(lines.slice(0, 3), [
    "# CUDA_VISIBLE_DEVICES=0 bash <this script> 0 2 4",
    "# CUDA_VISIBLE_DEVICES=3 bash <this script> 1 3",
    "#!/bin/bash",
  ]);
});

test("new local workers get places that no other has, second runs separate folders", async () => {
  const out = join(folder, "places");
  const own = submission({ out, parts: 4, workers: 3 });
  await prepareFolder(own);
  const program = join(folder, "waits.sh");
  writeFileSync(program, "#!/bin/bash\nexec sleep 300\n", { mode: 0o755 });
  const engine = localEngine([program]);
  const placesOf = (handle: string) => (JSON.parse(handle) as { place: number }[]).map(({ place }) => place);
  const start = async (parts: number[], copies?: boolean) => {
    const handle = await engine.start(own, parts, copies);
    own.batches.push({ handle, parts, ...(copies && { copy: true as const }) });
    return placesOf(handle);
  };
  assert.equal(await start([0, 1]), [0, 1]);
  assert.is(await engine.busy(own), 2);
  assert.equal(await start([1], true), [2]);
  const script = readFileSync(join(out, "parts/extract-copy.sh"), "utf8");
  assert.match(
    script,
    `--out ${out}/parts/copy-"$part" --shard "$part/4" >>${out}/parts/part-"$part"-copy.log`,
  );
  await engine.stop({ batches: own.batches.slice(0, 1) }, [1]);
  assert.equal([...(await engine.active({ batches: own.batches.slice(0, 1) }))], [0]);
  assert.equal([...(await engine.active(own))].sort(), [0, 1], "the second run is not stopped");
  assert.equal(await start([1, 2, 3]), [1], "three parts take turns at the place that is free");
  await engine.stop(own);
  assert.is(await engine.busy(own), 0);
});

test("a local worker outlives its starter, is seen while it runs, and is stopped with its child", async () => {
  // A program that stands for tapline: it writes its part's number, then waits.
  const program = join(folder, "program.sh");
  writeFileSync(program, '#!/bin/bash\necho "$@" >>"$(dirname "$0")/said"; exec sleep 300\n', {
    mode: 0o755,
  });
  const own = submission({ out: join(folder, "it's rows"), parts: 3, workers: 2 });
  await prepareFolder(own);
  const engine = localEngine([program]);
  assert.equal([...(await engine.active(own))], []);
  own.batches.push({ handle: await engine.start(own, [0, 2, 1]), parts: [0, 2, 1] });
  assert.equal([...(await engine.active(own))].sort(), [0, 1, 2]);
  const said = () =>
    existsSync(join(folder, "said")) ? readFileSync(join(folder, "said"), "utf8").trim().split("\n") : [];
  await until(() => said().length === 2);
  assert.equal(
    said().sort(),
    [0, 2].map(
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
