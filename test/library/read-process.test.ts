/** What the process that reads large things does with its one task, here within the test's own process. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { encodeSafetensors } from "../../src/formats/safetensors.js";
import type { LibraryTask, Taken } from "../../src/library/read-process.js";
import { TestHub } from "../models/support/hub.js";
import { until } from "../support/until.js";

const home = mkdtempSync(join(tmpdir(), "tapline-library-process-"));
const { HF_ENDPOINT, HF_HOME } = process.env;
const { connected, send, disconnect } = process;
const events = ["message", "disconnect", "SIGINT", "SIGHUP"] as const;
const known = events.map((event) => process.listeners(event as "exit"));

const said: (Taken | "gone")[] = [];
let task: (task: LibraryTask) => Promise<void>;
let leave: () => void;
let hub: TestHub;
test.before(async () => {
  hub = await TestHub.open();
  Object.assign(process.env, { HF_ENDPOINT: hub.url, HF_HOME: join(home, "hf") });
  Object.assign(process, {
    connected: true,
    send: (answer: Taken, _handle: unknown, _options: unknown, sent: () => void) => {
      said.push(answer);
      sent();
    },
    disconnect: () => said.push("gone"),
  });
  await import("../../src/library/read-process.js");
  // A process without parent hears no messages: they are given to who listens.
  const [message, left] = events.map((event) => process.rawListeners(event).at(-1) as () => void);
  task = (message as unknown as { listener: typeof task }).listener;
  leave = left as () => void;
});
test.after(async () => {
  for (const [index, event] of events.entries()) {
    for (const one of process.listeners(event as "exit")) {
      if (!known[index]!.includes(one)) process.removeListener(event, one);
    }
  }
  Object.assign(process, { connected, send, disconnect });
  for (const [name, value] of Object.entries({ HF_ENDPOINT, HF_HOME })) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  await hub.close();
  rmSync(home, { recursive: true, force: true });
});
test.before.each(() => {
  said.length = 0;
});

const asked = { kind: "dictionary", home, name: "own", claims: {}, revision: undefined } as const;

test("reading returns the item or a reason; a lost client gets nothing", async () => {
  const place = join(home, "published");
  mkdirSync(place);
  const tensor = (...shape: number[]) => ({
    shape,
    data: new Float32Array(shape.reduce((a, b) => a * b)).fill(0.5),
  });
  const weights = { W_enc: tensor(3, 2), W_dec: tensor(2, 3), b_enc: tensor(2), b_dec: tensor(3) };
  writeFileSync(join(place, "sae_weights.safetensors"), encodeSafetensors(weights));
  const metadata = { hook_name: "blocks.4.hook_resid_post" };
  writeFileSync(join(place, "cfg.json"), JSON.stringify({ architecture: "standard", metadata }));
  await task({ ...asked, place });
  const [{ stored }, end] = said as [{ stored: { name: string; layer: number } }, string];
  assert.equal([stored.name, stored.layer, end, said.length], ["own", 4, "gone", 2]);
  said.length = 0;
  await task({ ...asked, place: join(place, "none") });
  assert.equal(said, [{ refused: `No file or folder ${join(place, "none")}.` }, "gone"]);
  said.length = 0;
  Object.assign(process, { connected: false });
  await task({ ...asked, place });
  Object.assign(process, { connected: true });
  assert.equal(said, []);
});

test("who leaves ends the download", async () => {
  hub.repositories["tiny/saes"] = {
    files: { "cfg.json": Buffer.from("{}"), "sae_weights.safetensors": Buffer.alloc(2000) },
  };
  // Its head comes, and then nothing more.
  hub.faults = { stall: () => true };
  const done = task({ ...asked, place: "tiny/saes" });
  await until(() => hub.requests.some(({ path }) => path.includes("/resolve/")), "it downloads", 1);
  assert.equal(said, []);
  leave();
  await until(() => said.length === 2, "the process ends", 1);
  await done;
  assert.equal(said, [{ refused: "The client disconnected." }, "gone"]);
});

test.run();
