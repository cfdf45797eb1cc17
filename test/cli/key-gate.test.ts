import { test } from "uvu";
import * as assert from "uvu/assert";
import { KeyGate } from "../../src/cli/commands/chat-key-gate.js";
import { fc } from "../support/fc.js";

function gate() {
  let interrupts = 0;
  let passed = "";
  const made = new KeyGate(() => interrupts++);
  made.on("data", (chunk) => {
    passed += chunk;
  });
  const type = (text: string) => new Promise<void>((resolve) => made.write(text, () => resolve()));
  // Pushed data reach the reader one turn later.
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return { made, type, settled, interrupts: () => interrupts, passed: () => passed };
}

test("a paste is one line however its bytes are split, and contains no keys", async () => {
  const typed = Buffer.from("a\u001b[200~één\r\ntwo\rthree\u0003\u001b[A\tx\u001b[201~b\r");
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat({ max: typed.length }), { maxLength: 6 }), async (cuts) => {
      const { made, settled, passed } = gate();
      const edges = [0, ...cuts.sort((x, y) => x - y), typed.length];
      for (const [index, edge] of edges.slice(1).entries()) made.write(typed.subarray(edges[index], edge));
      await settled();
      assert.is(passed(), "aéén⏎two⏎three[A    xb\r");
    }),
    { numRuns: 60 },
  );
});

test("while held, everything waits except Ctrl-C, which discards the waiting input", async () => {
  const { made, type, settled, interrupts, passed } = gate();
  made.hold();
  await type("early ");
  await type("\u0003");
  assert.is(interrupts(), 1);
  await type("later");
  made.release();
  await settled();
  assert.is(passed(), "later");
  await type("\u0003");
  await settled();
  assert.is(passed(), "later\u0003");
  assert.is(interrupts(), 1);
});

test.run();
