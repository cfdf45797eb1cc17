/** Guards against what no device was seen to do: one that gets it wrong on purpose. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { onPretendGpu } from "../support/pretend-gpu/index.js";

const fixture = new URL("./fixtures/guarded.ts", import.meta.url);
const guarded = async (wrong?: Parameters<typeof onPretendGpu>[3]) =>
  (await onPretendGpu<Record<"attention" | "routing" | "live", string>>("1x1024", fixture, {}, wrong)).output;

test("a device that is right is not doubted", async () => {
  assert.equal(await guarded(), { attention: "", routing: "", live: "" });
});

test("attention that sums to more than 1 is refused", async () => {
  const { attention, ...rest } = await guarded("softmax");
  assert.match(attention, /^The attention of block 3 at token 0 sums to 1\.1\d*, not to 1\.$/);
  assert.equal(rest, { routing: "", live: "" });
});

test("an expert that is chosen twice is refused", async () => {
  const { routing, ...rest } = await guarded("choice");
  assert.match(routing, /^The router of block 1 at token 0 chose expert \d+ twice\.$/);
  assert.equal(rest, { attention: "", live: "" });
});

test("a batch whose rows moved unexpectedly is not read", async () => {
  const { live, ...rest } = await guarded("positions");
  assert.is(live, "The rows of a micro-batch are not in the expected order.");
  assert.equal(rest, { attention: "", routing: "" });
});

test.run();
