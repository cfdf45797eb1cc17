import { test } from "uvu";
import * as assert from "uvu/assert";
import { explainFailure } from "../../scripts/build/cmake.js";
import { jobs } from "../../scripts/build/parallel.js";
import { createProgress, duration } from "../../scripts/build/progress.js";

function record(isTTY: boolean, secondsPerLine: number) {
  let time = 0;
  let written = "";
  const write = (text: string) => {
    written += text;
  };
  const stream = { isTTY, columns: 60, write };
  const progress = createProgress({ stream, now: () => time });
  return {
    feed(lines: string[]) {
      for (const line of lines) {
        time += secondsPerLine * 1000;
        progress.line(line);
      }
    },
    end: () => progress.end(),
    text: () => written,
  };
}

const ninja = (total: number) =>
  Array.from({ length: total }, (_, i) => `[${i + 1}/${total}] Building CXX object x${i}.o`);

test("a log gets one line every 10 %, with the remaining time", () => {
  const log = record(false, 1);
  log.feed(ninja(200));
  const lines = log.text().trimEnd().split("\n");
  assert.is(lines.length, 10);
  assert.is(lines[0], "tapline: compiling [20/200] 10 %, 3 min 0 s left");
  assert.is(lines[4], "tapline: compiling [100/200] 50 %, 1 min 40 s left");
  assert.is(lines[9], "tapline: compiling [200/200] 100 %");
});

test("make's percentages are read as well", () => {
  const log = record(false, 1);
  log.feed([
    "Scanning dependencies",
    "[  3%] Building",
    "[ 12%] Building",
    "[ 14%] Building",
    "[100%] Linking",
  ]);
  assert.is(log.text(), "tapline: compiling 12 %\ntapline: compiling 100 %\n");
});

test("a terminal gets one line that updates and is cleared at the end", () => {
  const terminal = record(true, 1);
  terminal.feed(ninja(20));
  terminal.end();
  assert.not.match(terminal.text(), /\n/);
  assert.is(terminal.text().split("\r").length - 1, 21);
  assert.ok(terminal.text().endsWith("\r\u001b[K"));
});

test("a rerun of CMake is not counted as the build", () => {
  const log = record(false, 1);
  log.feed(["[0/1] Re-running CMake...", "[1/1] Re-checking globbed directories...", "-- Configuring done"]);
  assert.is(log.text(), "");
});

test("durations read well", () => {
  assert.is(duration(59_400), "59 s");
  assert.is(duration(198_000), "3 min 18 s");
});

const GIB = 1024 ** 3;

test("as many compilers as cores and memory allow", () => {
  assert.is(jobs("cpu", { env: {}, cores: 2, memory: 24 * GIB }), 2);
  assert.is(jobs("cpu", { env: {}, cores: 16, memory: 8 * GIB }), 5);
  assert.is(jobs("cuda", { env: {}, cores: 16, memory: 24 * GIB }), 8);
  assert.is(jobs("cpu", { env: {}, cores: 4, memory: 0.5 * GIB }), 1);
  assert.is(jobs("cpu", { env: { TAPLINE_JOBS: "7" }, cores: 2, memory: GIB }), 7);
  assert.throws(() => jobs("cpu", { env: { TAPLINE_JOBS: "many" }, cores: 2, memory: GIB }), /TAPLINE_JOBS/);
});

test("a failed build is explained by its telling lines", () => {
  const build = { log: "cpu.log", jobs: 4 };
  const killed = ["c++: fatal error: Killed signal terminated program cc1plus"];
  assert.match(
    explainFailure(killed, build),
    /ran out of memory with 4 at once: try fewer with TAPLINE_JOBS=2/,
  );
  assert.match(explainFailure(["fatal error: x.o: No space left on device"], build), /^The disk is full/);
  const lines = ["[1/2] Building", "native/a.cpp:3:1: error: 'x' was not declared", "[2/2] Building"];
  assert.is(
    explainFailure(lines, build),
    "The build failed; its whole output is in cpu.log.\n  native/a.cpp:3:1: error: 'x' was not declared",
  );
});

test.run();
