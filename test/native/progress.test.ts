/** What an operation tells on its way: all of it before its promise settles, and to whom it may do no harm. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Model } from "../../src/native/index.js";
import { demo } from "./demo-model.js";

let model: Model;
test.before(async () => {
  model = await Model.open(demo);
});
test.after(() => model.close());

const opened = () => model.createContext({ threads: 1, nCtx: 64, maxSequences: 4 });
const texts = (count: number) => Array.from({ length: count }, (_, i) => Int32Array.of(1 + i, 2));

test("the last progress call comes before the promise settles", async () => {
  const context = await opened();
  // Two threads race for this: once proves nothing.
  for (let round = 0; round < 300; round++) {
    const seen: string[] = [];
    await context.features({
      ...{ sequences: texts(2), layers: [0] },
      onProgress: (done, total) => void seen.push(`${done} of ${total}`),
    });
    const told = [...seen];
    assert.is(told.at(-1), "2 of 2", `round ${round}`);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(seen, told);
  }
  await context.close();
});

test("an exception in a callback is uncaught; the operation still returns its rows", async () => {
  const context = await opened();
  const thrown: string[] = [];
  const heard = (error: Error) => void thrown.push(error.message);
  process.on("uncaughtException", heard);
  try {
    const rows = await context.features({
      sequences: texts(2),
      layers: [3],
      onProgress: (done) => {
        throw new Error(`at ${done}`);
      },
    });
    assert.is(rows.get(3)?.shape[0], 2);
    assert.is(thrown.at(-1), "at 2");
  } finally {
    process.off("uncaughtException", heard);
  }
  await context.close();
});

test.run();
