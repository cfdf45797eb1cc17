/** Training a dictionary: the Lab's settings by hand, and what becomes of a job's files; a scripted Lab. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { storeTrainedDictionary, trainingSettings } from "../../src/workbench/dictionary-training.js";
import { sendJson } from "../client/scripted.js";
import { closeAll, open, refusal } from "./asking.js";
import type { Answering, Answers } from "./parts.js";

test.after.each(closeAll);

const id = "0123456789abcdef0123456789abcdef";
const path = `/lab/v1/jobs/${id}`;
const done = (more: object = {}) => ({
  ...{ id, operation: "sae", status: "completed", model: "m" },
  result: { reports: [{ layer: 3 }, { layer: 5 }] },
  ...more,
});
const bytes =
  (text: string): Answering =>
  (response) =>
    void response.end(text);

test("without texts, those of the contrast sets are used once each; every fifth is held out", () => {
  const sets = [
    { positive: ["a", "b"], negative: ["c", "d"] },
    { positive: ["e", "f"], negative: ["c", "g"] },
  ];
  const { examples, ...settings } = trainingSettings({ layer: 4, features: 64, k: 8 }, sets);
  assert.equal(settings, {
    ...{ layers: [4], rows: "all", architecture: "topk", k: 8, features: 64, steps: 500 },
  });
  assert.equal(
    examples.map(({ text, split }) => `${text} ${split}`),
    ["a train", "b train", "c train", "d train", "e test", "f train", "g train"],
  );
  const own = trainingSettings({ layer: 4, features: 64, k: 8, texts: ["x", "y"] }, sets);
  assert.equal(
    own.examples.map(({ text }) => text),
    ["x", "y"],
  );
});

test("more active features than there are is refused", () => {
  assert.throws(
    () => trainingSettings({ layer: 0, features: 8, k: 9 }, []),
    (error: Error) => error.message === "k: at most the 8 features, got 9.",
  );
});

test("a job's dictionary is added from its files, which are then removed", async () => {
  let seen: { from: string; weights: string; normalization: string } | undefined;
  const answers: Answers = {
    [`GET ${path}`]: done(),
    [`GET ${path}/artifacts/sae-layer-5.safetensors`]: bytes("weights"),
    [`GET ${path}/artifacts/sae-normalization-5.npz`]: bytes("mean"),
    "PUT /lab/dictionaries/own": ((response, { body }) => {
      const { from } = JSON.parse(body) as { from: string };
      const file = (name: string) => readFileSync(join(dirname(from), name), "utf8");
      seen = { from, weights: readFileSync(from, "utf8"), normalization: file("sae-normalization-5.npz") };
      sendJson(response, 200, { name: "own" });
    }) as Answering,
  };
  const { services } = await open(answers);
  const stored = await storeTrainedDictionary(services, { name: "own", job: id, layer: 5 });
  assert.is(stored.name, "own");
  assert.equal([seen?.weights, seen?.normalization], ["weights", "mean"]);
  assert.not(existsSync(seen?.from ?? ""));
});

test("jobs without that dictionary are refused with the reason", async () => {
  const refused = async (job: object, layer: number) => {
    const { services } = await open({ [`GET ${path}`]: job });
    return refusal(storeTrainedDictionary(services, { name: "own", job: id, layer }));
  };
  assert.equal(await refused(done(), 4), [
    404,
    "Job 01234567 has no dictionary at layer 4; it has layers 3, 5.",
  ]);
  assert.equal(await refused(done({ operation: "probe" }), 5), [
    409,
    "Job 01234567 trained no dictionary: it is probe.",
  ]);
  assert.equal(await refused(done({ result: undefined, status: "running" }), 5), [
    409,
    "Job 01234567 has no result; it is running.",
  ]);
});

test.run();
