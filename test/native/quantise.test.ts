import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Model, NativeError, quantise } from "../../src/native/index.js";
import { demo } from "./demo-model.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-quantise-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

test("a requantised model opens and is smaller; lossy sources are refused", async () => {
  const [q8, q4] = [join(folder, "q8.gguf"), join(folder, "q4.gguf")];
  await quantise({ from: demo, to: q8, form: "Q8_0", threads: 1 });
  await quantise({ from: demo, to: q4, form: "Q4_K_M", threads: 1 });
  const sizes = [demo, q8, q4].map((path) => statSync(path).size) as [number, number, number];
  assert.ok(sizes[0] > sizes[1] && sizes[1] > sizes[2], sizes.join());
  const model = await Model.open(q8);
  assert.is(model.info.quantization, "Q8_0");
  await model.close();
  for (const [from, told] of [
    [q8, /cannot be quantised: .*requantiz/],
    [join(folder, "none.gguf"), /none\.gguf cannot be quantised/],
  ] as const) {
    const error = await quantise({ from, to: join(folder, "again.gguf"), form: "Q4_K_M" }).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    assert.instance(error, NativeError);
    assert.is((error as NativeError).code, "MODEL_LOAD");
    assert.match((error as NativeError).message, told);
  }
  assert.ok(existsSync(q4));
});

test.run();
