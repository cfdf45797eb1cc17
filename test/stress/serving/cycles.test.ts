import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { test } from "uvu";
import * as assert from "uvu/assert";

const cycles = Number(process.env.TAPLINE_STRESS_CYCLES ?? 100);
/** What is allocated once, whatever comes later, is allocated by then. */
const settling = Math.min(20, Math.floor(cycles / 3));

/**
 * glibc keeps what threads free, in an arena for each, as much as it likes: up to a third of this process, at
 * random. One arena that gives everything back at once leaves in the resident size what is really held.
 */
const givingBack = {
  MALLOC_ARENA_MAX: "1",
  MALLOC_TRIM_THRESHOLD_: "131072",
  MALLOC_MMAP_THRESHOLD_: "131072",
};

test(`${cycles} times loading, answering and unloading grow memory by less than 5 %`, async () => {
  const program = fileURLToPath(new URL("load-cycles.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--expose-gc", "--import", "tsx", program, String(cycles)],
    { env: { ...process.env, ...givingBack } },
  );
  const held = JSON.parse(stdout) as number[];
  assert.is(held.length, cycles);
  // The least of several: a leak raises it, a passing peak does not.
  const settled = Math.min(...held.slice(settling, 2 * settling));
  const grown = Math.min(...held.slice(-settling)) / settled - 1;
  console.log(
    `      ${(settled / 2 ** 20).toFixed(0)} MiB after ${settling}, ${(100 * grown).toFixed(1)} % more after ${cycles}`,
  );
  assert.ok(grown < 0.05, `memory grew by ${(100 * grown).toFixed(1)} %`);
});

test.run();
