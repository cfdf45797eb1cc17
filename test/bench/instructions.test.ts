import { test } from "uvu";
import * as assert from "uvu/assert";
import { goalsElsewhere, goalsRecordedOn, instructionSet, resultName } from "../../bench/instructions.js";
import { backendInfo } from "../../src/native/index.js";

const avx2 = instructionSet("CPU : SSE3 = 1 | AVX2 = 1 | F16C = 1 | FMA = 1 | AVX512 = 0 | ");
const best = instructionSet(
  "CPU : AVX2 = 1 | AVX_VNNI = 1 | AVX512 = 1 | AVX512_VNNI = 1 | LLAMAFILE = 1 | ",
);

const amx = instructionSet("CPU : AVX2 = 1 | AVX512 = 1 | AVX512_VNNI = 1 | REPACK = 1 |  | AMX_INT8 = 1");

test("names the best instruction set in ggml's list", () => {
  assert.is(best.name, "AVX-512 with VNNI");
  assert.is(avx2.name, "AVX2");
  assert.is(amx.name, "AMX");
  assert.is(instructionSet("CPU : AVX2 = 1 | AVX512 = 1 | AMX_INT8 = 1").name, "AVX-512");
  assert.is(instructionSet("CPU : AVX2 = 1 | AVX_VNNI = 1 |").name, "AVX2 with VNNI");
  assert.is(instructionSet("CPU : AVX2 = 1 | AVX512 = 1 |").name, "AVX-512");
  assert.is(instructionSet("CPU : NEON = 1 | ARM_FMA = 1 |").name, "NEON");
  assert.is(instructionSet("CPU : SSE3 = 1 | SSSE3 = 1 |").slug, "portable");
});

test("the addon's own list names an instruction set of this processor", () => {
  const { systemInfo } = backendInfo();
  if (process.arch === "x64") assert.match(systemInfo, /\bSSE3 = 1\b/);
  assert.is(instructionSet(systemInfo).name.startsWith("AVX-512"), /\bAVX512 = 1\b/.test(systemInfo));
});

test("a sentence names both instruction sets where goals were recorded on another", () => {
  assert.is(
    goalsElsewhere({ suite: "capture", backend: "cpu", here: avx2 }),
    "The goals of capture were recorded on a processor with AVX-512 with VNNI, and this one has AVX2: " +
      "meeting or missing them here says nothing about a change.",
  );
  for (const suite of ["extract", "forward", "live", "peers", "serve"])
    assert.match(goalsElsewhere({ suite, backend: "cpu", here: avx2 })!, `The goals of ${suite} were`);
  assert.is(
    goalsElsewhere({ suite: "live", backend: "cpu", here: amx }),
    "The goals of live were recorded on a processor with AVX-512 with VNNI, and this one has AMX: " +
      "meeting or missing them here says nothing about a change.",
  );
  assert.is(goalsElsewhere({ suite: "capture", backend: "cpu", here: best }), undefined);
  assert.is(goalsElsewhere({ suite: "capture", backend: "cuda", here: avx2 }), undefined);
  assert.is(goalsElsewhere({ suite: "studies", backend: "cpu", here: avx2 }), undefined);
  assert.is(goalsRecordedOn({ suite: "live", backend: "cpu", here: avx2 })?.name, "AVX-512 with VNNI");
});

test("results of another instruction set get a separate file", () => {
  assert.is(resultName({ suite: "live", backend: "cpu", here: best }), "live-cpu.json");
  assert.is(resultName({ suite: "live", backend: "cpu", here: avx2 }), "live-cpu-avx2.json");
  assert.is(resultName({ suite: "live", backend: "cpu", here: amx }), "live-cpu-amx.json");
  assert.is(resultName({ suite: "live", backend: "cuda", here: avx2 }), "live-cuda.json");
  assert.is(resultName({ suite: "studies", backend: "cpu", here: avx2 }), "studies-cpu.json");
});

test.run();
