import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Held } from "./load-cycles.js";

const cycles = Number(process.env.TAPLINE_STRESS_CYCLES ?? 100);
/** Times before those that count: one-time allocations have happened by then. */
const settling = 40;
/** The least of this many counts, which no passing peak raises. */
const window = 10;

// The resident size says little of what is held: pages of freed blocks stay, and V8 keeps code and throws it away, in steps
// of 3 to 16 MiB. What malloc has given out and JavaScript's live objects are told to the byte. Needs Linux, a C compiler.
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tapline-cycles-"));
const module = join(folder, "in-use.node");
const headers = here("../../../node_modules/node-api-headers/include");
const possible =
  process.platform === "linux" &&
  spawnSync("cc", ["-shared", "-fPIC", "-I", headers, "-o", module, here("in-use.c")]).status === 0;

const test = suite("loading, answering and unloading, again and again");
test.after(() => rmSync(folder, { recursive: true }));

(possible ? test : test.skip)(
  `of ${cycles} times nothing stays: no block, no object, no thread, no mapped file`,
  async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--expose-gc", "--import", "tsx", here("load-cycles.ts"), String(settling + cycles), module],
      // A thread's own store of freed blocks would count as given out.
      { env: { ...process.env, GLIBC_TUNABLES: "glibc.malloc.tcache_count=0" } },
    );
    const held = JSON.parse(stdout) as Held[];
    assert.is(held.length, settling + cycles);
    const least = (what: keyof Held, from: number) =>
      Math.min(...held.slice(from, from + window).map((each) => each[what]));
    const grown = (what: keyof Held) =>
      (least(what, held.length - window) - least(what, settling)) / (cycles - window);
    console.log(
      `      a time: ${grown("native").toFixed(0)} bytes of malloc's, ${grown("heap").toFixed(0)} of JavaScript's`,
    );
    const all = (what: keyof Held) => held.map((each) => each[what]).join(" ");
    // One model and its server hold 15 MiB. Node's own servers and sockets leave some hundred bytes each.
    assert.ok(grown("native") < 4096, `malloc's bytes grow: ${all("native")}`);
    assert.ok(grown("heap") < 8192, `JavaScript's bytes grow: ${all("heap")}`);
    assert.is(least("threads", held.length - window), least("threads", settling), all("threads"));
    assert.is(least("mapped", held.length - window), 0, all("mapped"));
  },
);

test.run();
