/** Which slots requests take: neighbours, since llama.cpp computes only neighbouring slots in one pass. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Engine } from "../../src/native/engine.js";
import { patient, writeTinyModel } from "../inference/support/tiny-models.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-slots-"));
const path = join(folder, "patient.gguf");
const slots = 8;
let engine: Engine;
test.before(async () => {
  await writeTinyModel(path, patient);
  engine = await Engine.open({
    ...{ path, id: "patient", threads: 1, parallel: slots, ctxSize: 16_384 },
  });
});
test.after(async () => {
  await engine?.close();
  rmSync(folder, { recursive: true, force: true });
});

type Parts = NonNullable<Awaited<ReturnType<Engine["request"]>>["parts"]>;

const open = new Set<Parts>();

/** The busy slots, in order. */
async function busy(): Promise<number[]> {
  const { body } = await engine.request("slots", {});
  const all = JSON.parse(body as string) as { id: number; is_processing: boolean }[];
  return all.filter((one) => one.is_processing).map(({ id }) => id);
}

/**
 * Starts an answer that does not end by itself, to a prompt of twelve tokens; the prompts of two numbers begin differently.
 * @returns the answer, and the slots that it took
 */
async function start(number: number, more: object = {}) {
  const before = await busy();
  const prompt = Array.from({ length: 12 }, (_, at) => 10 + ((37 * number + at) % 300));
  const { parts } = await engine.request("completion", {
    ...{ prompt, max_tokens: 16_000, ignore_eos: true, stream: true, ...more },
  });
  assert.ok(parts !== null);
  await parts.next();
  open.add(parts);
  const taken = (await busy()).filter((slot) => !before.includes(slot));
  return { parts, taken };
}

async function end(parts: Parts): Promise<void> {
  const count = (await busy()).length;
  open.delete(parts);
  await parts.return?.();
  while ((await busy()).length === count);
}

test.after.each(async () => {
  for (const parts of open) await end(parts);
});

test("a request takes the slot between two busy ones, not one that was never used", async () => {
  await start(1);
  const middle = await start(2);
  await start(3);
  const slot = middle.taken[0] as number;
  assert.equal(await busy(), [slot - 1, slot, slot + 1]);
  await end(middle.parts);
  const { taken } = await start(4);
  assert.equal(taken, [slot]);
});

test("a request takes a neighbour of the busy slots, of both the one unused for longest", async () => {
  const one = await start(5);
  const at = one.taken[0] as number;
  const two = await start(6);
  const [next] = two.taken as [number];
  assert.is(Math.abs(next - at), 1);
  await end(two.parts);
  // Both neighbours are idle; this one was used later than the other.
  const other = 2 * at - next;
  assert.ok(other >= 0 && other < slots, "the test needs both neighbours");
  assert.equal((await start(7)).taken, [other]);
});

test("a request takes the slot that has the beginning of its prompt, wherever it is", async () => {
  const first = await start(8);
  const [kept] = first.taken as [number];
  await end(first.parts);
  const id_slot = (kept + 4) % slots;
  await start(9, { id_slot });
  assert.equal((await start(8)).taken, [kept]);
});

test("several choices of one prompt take neighbouring slots of an idle server", async () => {
  const { taken } = await start(10, { n: 4 });
  assert.equal(taken, [0, 1, 2, 3]);
});

test("four requests that come and go stay in neighbouring slots", async () => {
  const running: Parts[] = [];
  for (let at = 0; at < 4; at++) running.push((await start(20 + at)).parts);
  for (let at = 0; at < 12; at++) {
    // Which one ends changes, as with answers of different lengths.
    const [ends] = running.splice([0, 2, 1, 3][at % 4] as number, 1);
    await end(ends as Parts);
    running.push((await start(30 + at)).parts);
  }
  const now = await busy();
  assert.is((now.at(-1) as number) - (now[0] as number), 3, now.join());
});

test.run();
