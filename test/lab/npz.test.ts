import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type NpzArray, NpzWriter } from "../../src/formats/npz-writer.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { writeNpz } from "../../src/lab/npz.js";
import { fc } from "../support/fc.js";
import { readNpz, readNpzWithNumpy } from "./npz-reader.js";

let folder: string;
test.before.each(() => {
  folder = mkdtempSync(join(tmpdir(), "tapline-npz-"));
});
test.after.each(() => rmSync(folder, { recursive: true }));

test("property: arrays written in interleaved pieces read back complete", async () => {
  const shape = fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 3 });
  let file = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(shape, fc.constantFrom("f4" as const, "f8" as const)), {
        minLength: 1,
        maxLength: 5,
      }),
      fc.integer({ min: 1, max: 7 }),
      async (shapes, piece) => {
        const arrays: NpzArray[] = shapes.map(([size, dtype], index) => ({
          name: `layer_${index}`,
          shape: size,
          dtype,
        }));
        const data = shapes.map(([size, dtype], index) => {
          const length = size.reduce((product, count) => product * count, 1);
          const values = Array.from({ length }, (_, k) => index + k / 8);
          return dtype === "f8" ? Float64Array.from(values) : Float32Array.from(values);
        });
        const name = `${file++}.npz`;
        await new Artifacts(folder).create(name, async (target) => {
          const npz = new NpzWriter(target, arrays);
          for (let start = 0; data.some(({ length }) => start < length); start += piece) {
            for (const [index, values] of data.entries()) {
              await npz.append(index, values.subarray(start, start + piece));
            }
          }
          await npz.finish();
        });
        const back = readNpz(readFileSync(join(folder, name)));
        for (const [index, values] of data.entries()) {
          assert.equal(back.get(`layer_${index}`), {
            shape: arrays[index]?.shape,
            data: Float64Array.from(values),
          });
        }
      },
    ),
    { numRuns: 60 },
  );
  const numpy = readNpzWithNumpy(join(folder, "0.npz"));
  if (numpy !== null)
    assert.equal(Object.keys(numpy), [...readNpz(readFileSync(join(folder, "0.npz"))).keys()]);
});

test("too few or too many values are refused, and no file is left", async () => {
  const artifacts = new Artifacts(folder);
  for (const count of [0, 5, 7]) {
    const data = new Float32Array(count);
    let fault: unknown;
    await writeNpz(artifacts, "x.npz", { a: { shape: [2, 3], data } }).catch((error) => {
      fault = error;
    });
    assert.instance(fault, RangeError, String(count));
  }
  assert.equal(readdirSync(folder), []);
  assert.equal(artifacts.names, []);
});

test("4 GiB are refused before a byte is written", async () => {
  const arrays = [{ name: "a", shape: [1, 2 ** 15, 2 ** 15] }];
  let fault: unknown;
  await new Artifacts(folder)
    .create("x.npz", async (file) => void new NpzWriter(file, arrays))
    .catch((error) => {
      fault = error;
    });
  assert.instance(fault, RangeError);
  assert.match((fault as Error).message, "would need zip64");
});

test.run();
