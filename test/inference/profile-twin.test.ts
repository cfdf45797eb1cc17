/**
 * Plain requests that share batches with profiled ones keep their bits: every batch is computed a second time without any
 * edit (docs/contributing/verification.md).
 */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { listen } from "../../src/http/index.js";
import { inferenceApp } from "../../src/inference/index.js";
import { openLibrary } from "../../src/inference/live/library.js";
import { createService } from "../../src/inference/service.js";
import { resolveModel } from "../../src/models/resolve.js";
import { Engine, type TwinReport } from "../../src/native/engine.js";
import { backendInfo } from "../../src/native/index.js";
import { demo } from "../native/demo-model.js";
import { TestRandom } from "../support/random.js";
import { send } from "../support/request.js";
import { temporaryFolder } from "../support/temporary.js";

test("plain answers next to profiled ones have the bits of unedited batches", async () => {
  const engine = await Engine.open({
    ...{
      path: demo,
      id: "demo",
      threads: 1,
      parallel: 4,
      batch: 32,
      ctxSize: 256,
      cacheRamMiB: 0,
      twin: true,
    },
  });
  const library = await openLibrary(engine.info, temporaryFolder("profile-twin"));
  const values = new TestRandom(2).normals(engine.info.nEmbd);
  await library.vectors.put("odd", new Map([[4, values]]), library.model, { note: "" });
  const steer = { kind: "steer", vector: "odd", strength_unit: "row_norm", positions: "all" } as const;
  const profiles = { strong: 0.8, against: -0.8, zero: 0 };
  for (const [name, strength] of Object.entries(profiles)) {
    await library.profiles.put(name, { tapline: { interventions: [{ ...steer, strength }] } }, library.model);
  }
  const resolved = await resolveModel("demo");
  const service = createService(
    {
      ...{ engine, library, resolved, backend: backendInfo() },
      requestedModel: "demo",
      requestedRevision: null,
    },
    60_000,
  );
  const listening = await listen(
    inferenceApp(service, () => {}),
    { port: 0 },
  );
  try {
    const ask = async (model: string, prompt: string) => {
      const body = { model, prompt, max_tokens: 8, ignore_eos: true, temperature: 0, logprobs: 2 };
      const { status, body: answer } = await send(`${listening.url}/v1/completions`, "POST", body);
      assert.is(status, 200, JSON.stringify(answer));
      return answer.choices[0].text as string;
    };
    const prefix = "The review says that the film was good. ".repeat(4);
    const texts = new Map<string, Set<string>>();
    for (const start of ["", prefix]) {
      const prompt = `${start}The capital of France is`;
      for (let round = 0; round < 4; round++) {
        const models = [
          "demo",
          "demo@strong",
          "demo",
          "demo@against",
          "demo",
          "demo@zero",
          "demo@strong",
          "demo",
        ];
        await Promise.all(
          models.map(async (model) => {
            const key = `${model}${start}`;
            const found = texts.get(key) ?? new Set();
            texts.set(key, found.add(await ask(model, prompt)));
          }),
        );
      }
    }
    const twin = engine.twin() as TwinReport;
    assert.is(twin.first, "");
    assert.equal([twin.plain.different, twin.neutral.different, twin.lost], [0, 0, 0]);
    assert.ok(twin.plain.beside > 16, `${twin.plain.beside} plain rows beside profiled ones`);
    assert.ok(twin.neutral.beside > 0, `${twin.neutral.beside} rows of strength zero`);
    assert.ok(
      twin.edited.different > 0.5 * twin.edited.rows,
      `${twin.edited.different} of ${twin.edited.rows}`,
    );
    // Greedy answers do not depend on their neighbors, and the profiles do something.
    for (const [key, answers] of texts) assert.is(answers.size, 1, key);
    assert.equal(texts.get("demo"), texts.get("demo@zero"));
    assert.not.equal(texts.get("demo"), texts.get("demo@strong"));
  } finally {
    await listening.close();
    await engine.close();
  }
});

test.run();
