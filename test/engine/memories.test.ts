/** What live requests leave behind in each kind of memory that llama.cpp has. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Edit } from "../../src/native/edit.js";
import { Engine } from "../../src/native/engine.js";
import { patient, writeTinyModel } from "../inference/support/tiny-models.js";
import {
  hidden,
  writeCompressed,
  writeHybrid,
  writeRecurrent,
  writeTrapdoor,
  writeWindowed,
} from "../native/memory-models.js";
import { until } from "../support/until.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-memories-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const kinds: [string, () => Promise<string>][] = [
  [
    "cells",
    async () => {
      const path = join(folder, "cells.gguf");
      await writeTinyModel(path, patient);
      return path;
    },
  ],
  ["keys alone", () => writeCompressed(folder)],
  ["a window", () => writeWindowed(folder)],
  ["a state", () => writeRecurrent(folder)],
  ["a state and cells", () => writeHybrid(folder)],
  ["a state and a window", () => writeHybrid(folder, 8)],
];

/** So many tokens: each byte is one. */
const text = (length: number) => Array.from({ length }, (_, i) => 33 + ((i * 7 + i * i) % 90));

for (const [kind, write] of kinds) {
  let engine: Engine;
  const ask = async (body: object, edits?: Edit[]) =>
    engine.request(
      "native-completion",
      { temperature: 0, ignore_eos: true, ...body },
      undefined,
      edits && { edits },
    );
  /** Log-probabilities of the continuations of a text, by token. */
  const next = async (prompt: number[], more: object = {}, edits?: Edit[]) => {
    const { status, body } = await ask(
      { prompt, n_predict: 1, n_probs: 320, logit_bias: [[97, 1000]], ...more },
      edits,
    );
    assert.is(status, 200, body);
    const [{ top_logprobs }] = JSON.parse(body).completion_probabilities;
    return new Map<number, number>(
      top_logprobs.map(({ id, logprob }: { id: number; logprob: number }) => [id, logprob]),
    );
  };
  const distance = (one: Map<number, number>, other: Map<number, number>) =>
    Math.max(
      ...[...one].filter(([id]) => other.has(id)).map(([id, value]) => Math.abs(value - other.get(id)!)),
    );

  test(`${kind}: later prompts do not reuse edited rows`, async () => {
    engine = await Engine.open({ path: await write(), id: "x", threads: 1, parallel: 1, ctxSize: 512 });
    assert.is(engine.info.captures, true, engine.info.noCaptureReason);
    const prompt = text(40);
    const before = await next(prompt);
    for (const positions of ["all", [[-3, -2]]] as Edit["positions"][]) {
      const edited = await next(prompt, {}, [{ layer: 0, scale: -3, positions }]);
      assert.ok(distance(edited, before) > 1e-3, `${positions} changes little`);
      for (let i = 0; i < 2; i++) assert.ok(distance(await next(prompt), before) < 1e-3, String(positions));
    }
    // A continuation of an edited answer begins with the same tokens.
    const { body } = await ask({ prompt, n_predict: 8, return_tokens: true }, [
      { layer: 0, scale: -3, positions: "generated" },
    ]);
    const longer = [...prompt, ...(JSON.parse(body).tokens as number[])];
    const cached = await next(longer);
    assert.ok(distance(cached, await next(longer, { cache_prompt: false })) < 1e-3, "behind an answer");
    await engine.close();
  });

  test(`${kind}: overflowed values in a slot are wiped there, and nowhere else`, async () => {
    engine = await Engine.open({
      ...{ path: await write(), id: "x", threads: 1, parallel: 2, ctxSize: 16_000, batch: 64 },
      // Without flash attention what is masked is multiplied with 0, so that a number that is not finite would be seen.
      ...{ flashAttention: "off", twin: true, cacheRamMiB: 0 },
    });
    for (const [slot, other] of [
      [0, 1],
      [1, 0],
    ]) {
      const { parts } = await ask({ prompt: "The", n_predict: 15_000, stream: true, id_slot: slot });
      await parts!.next();
      // Longer than its continuation, which would overwrite it otherwise.
      const failing = await ask({ prompt: text(60), n_predict: 2, id_slot: other }, [
        { layer: 0, scale: 3e38, positions: "all" },
      ]);
      assert.is(failing.status, 400, failing.body);
      assert.match(failing.body, /made the model's numbers non-finite/);
      const { status, body } = await ask({ prompt: text(9), n_predict: 4, id_slot: other });
      assert.is(status, 200, body);
      const { rows } = engine.twin()!.plain;
      await until(() => engine.twin()!.plain.rows > rows + 4);
      await parts!.return?.();
    }
    const { plain, lost, first } = engine.twin()!;
    assert.equal([plain.different, lost, first], [0, 0, ""]);
    await engine.close();
  });
}

// Flash attention skips masked numbers, so that no logits show the overflow; without it, they would spoil the next answer in
// this slot.
for (const flashAttention of ["on", "off"] as const)
  test(`a row that overflows after its edit fails unread, flash ${flashAttention}`, async () => {
    const path = await writeTrapdoor(mkdtempSync(join(folder, "trapdoor-")));
    const engine = await Engine.open({
      ...{ path, id: "x", threads: 1, parallel: 1, ctxSize: 512, batch: 64 },
      ...{ flashAttention, cacheRamMiB: 0 },
    });
    const ask = async (length: number, edits?: Edit[]) =>
      engine.request(
        "native-completion",
        { prompt: text(length), n_predict: 1, temperature: 0, n_probs: 5, cache_prompt: false },
        undefined,
        edits && { edits },
      );
    const plain = async () => JSON.stringify(JSON.parse((await ask(20)).body).completion_probabilities);
    const before = await plain();
    assert.match(before, /"logprob":-\d/);
    const vector = new Float32Array(hidden);
    vector[hidden - 1] = 1;
    // A change of the row's usual length. The prompt's last row reads about twenty tokens, not this one.
    const failing = await ask(60, [{ layer: 0, scale: 0, vector, positions: [[0, 0]] }]);
    assert.is(failing.status, 400, failing.body);
    assert.match(failing.body, /made the model's numbers non-finite/);
    assert.is(await plain(), before);
    await engine.close();
  });

test.run();
