import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { startServer } from "./support/serving.js";
import { filledOutputs, writeTinyModel } from "./support/tiny-models.js";

test("weights that are not finite are refused at the start, sound ones are served", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tapline-start-"));
  try {
    // With another RoPE than the model's own, nothing is captured: the weights are looked at all the same.
    const stretched = { ropeScaling: "linear", ropeScale: 2 } as const;
    for (const [broken, refused, options] of [
      [undefined, false, {}],
      [Number.NaN, true, {}],
      [Number.POSITIVE_INFINITY, true, {}],
      [undefined, false, stretched],
      [Number.NaN, true, stretched],
      [Number.POSITIVE_INFINITY, true, stretched],
    ] as const) {
      const path = join(folder, `tiny-${broken}.gguf`);
      await writeTinyModel(path, broken === undefined ? {} : { tensors: filledOutputs(broken) });
      const started = await startServer({ model: path, parallel: 1, ...options }).then(
        async (server) => {
          await server.close();
          return "";
        },
        (error: Error) => error.message,
      );
      if (refused) assert.match(started, /cannot be served.*not finite/);
      else assert.is(started, "");
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("aliases, defaults of sampling, and a context that is cut", async () => {
  const warnings: string[] = [];
  const server = await startServer({
    aliases: ["first", "second"],
    sampling: { temperature: 0, seed: 7 },
    ctxSize: 2048,
    parallel: 1,
    onWarning: (sentence) => warnings.push(sentence),
  });
  try {
    assert.ok(warnings.some((sentence) => /--ctx-size 2048 .*holds 512 tokens/.test(sentence)));
    const { body: list } = await server.get("/v1/models");
    assert.equal(
      [list.data[0].id, list.data[0].aliases, list.data[0].meta.pooling],
      ["first", ["first", "second"], "last"],
    );
    const ask = (extra: object) =>
      server.post("/completion", { prompt: "The capital of", n_predict: 2, ...extra });
    for (const model of ["first", "second"]) assert.is((await ask({ model })).status, 200);
    assert.is((await ask({ model: "tapline-demo" })).status, 404);
    const { temperature, seed } = (await ask({})).body.generation_settings;
    assert.equal([temperature, seed], [0, 7]);
    assert.is((await ask({ temperature: 1 })).body.generation_settings.temperature, 1);
    const { params } = (await server.get("/props")).body.default_generation_settings;
    assert.equal([params.temperature, params.seed], [0, 7]);
  } finally {
    await server.close();
  }
});

test.run();
