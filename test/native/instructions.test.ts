/** Instruction sets that ggml was compiled for and the processor lacks, in addons with kernels for one level. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { builtTool } from "../support/built-tool.js";

/** In the order of the sentence, with Linux's names. */
const sets = {
  AVX: "avx",
  FMA: "fma",
  F16C: "f16c",
  AVX2: "avx2",
  BMI2: "bmi2",
  "AVX-VNNI": "avx_vnni",
  "AVX-512": "avx512f",
  "AVX-512 VBMI": "avx512vbmi",
  "AVX-512 VNNI": "avx512_vnni",
  "AVX-512 BF16": "avx512_bf16",
};

if (process.arch === "x64" && existsSync("/proc/cpuinfo")) {
  test("what the processor lacks is what Linux does not list", async () => {
    const [, flags = ""] = /^flags\s*:(.*)$/m.exec(readFileSync("/proc/cpuinfo", "utf8")) ?? [];
    const here = new Set(flags.trim().split(/\s+/));
    const missing = Object.entries(sets).flatMap(([name, flag]) => (here.has(flag) ? [] : [name]));
    const program = await builtTool("tapline-instructions");
    assert.is(execFileSync(program, { encoding: "utf8" }), `${missing.join(", ")}\n`);
  });
} else {
  test("only sets that ggml may be compiled for are missing", async () => {
    const said = execFileSync(await builtTool("tapline-instructions"), { encoding: "utf8" }).trim();
    const known = process.arch === "x64" ? Object.keys(sets) : [];
    assert.ok(
      said.split(", ").every((name) => name === "" || known.includes(name)),
      said,
    );
  });
}

test.run();
