import { readFileSync } from "node:fs";
import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { FormatError } from "../../src/formats/format-error.js";
import { readGgufHeader } from "../../src/models/gguf-header.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { Model } from "../../src/native/index.js";
import { fc } from "../support/fc.js";

let folder: string;
test.before(async () => {
  folder = await mkdtemp(join(tmpdir(), "tapline-header-"));
});
test.after(() => rm(folder, { recursive: true }));

test("the header says what llama.cpp says after loading", async () => {
  const model = await Model.open(demoModelPath);
  const header = await readGgufHeader(demoModelPath);
  const { architecture, name, quantization, nParams, nCtxTrain, nLayer, nEmbd } = model.info;
  assert.equal(header, {
    architecture,
    name,
    quantization,
    parameters: nParams,
    context: nCtxTrain,
    blocks: nLayer,
    hidden: nEmbd,
  });
  await model.close();
});

test("a truncated or damaged header is reported, never trusted past the file", async () => {
  const demo = readFileSync(demoModelPath);
  const path = join(folder, "damaged.gguf");
  await fc.assert(
    fc.asyncProperty(
      fc.nat(60_000),
      fc.array(fc.tuple(fc.nat(60_000), fc.nat(255)), { maxLength: 4 }),
      async (length, damage) => {
        const bytes = Buffer.from(demo.subarray(0, length));
        for (const [at, value] of damage) if (at < length) bytes[at] = value;
        await writeFile(path, bytes);
        try {
          const { parameters } = await readGgufHeader(path);
          assert.type(parameters, "number");
        } catch (error) {
          assert.instance(error, FormatError);
        }
      },
    ),
    { numRuns: 150 },
  );
});

test("lengths that a large file could hold and no header has", async () => {
  const path = join(folder, "huge.gguf");
  const start = (tensors: number, pairs: number, ...words: bigint[]) => {
    const counts = [BigInt(tensors), BigInt(pairs), ...words].flatMap((word) => {
      const bytes = Buffer.alloc(8);
      bytes.writeBigUInt64LE(word);
      return [...bytes];
    });
    return Buffer.from([..."GGUF".split("").map((letter) => letter.charCodeAt(0)), 3, 0, 0, 0, ...counts]);
  };
  for (const header of [
    start(0, 1, 2n ** 33n), // a key of 8 GiB
    start(1, 0, 0n, 2n ** 32n - 1n), // a tensor of four billion dimensions
  ]) {
    await writeFile(path, header);
    await truncate(path, 2 ** 36);
    const error = await readGgufHeader(path).catch((fault: unknown) => fault);
    assert.instance(error, FormatError);
  }
});

test.run();
