/** Proposed labels: which excerpts are shown and held out, how answers are counted, and where they are sent; no model. */
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { detectionSentence } from "../../src/findings/label-finding.js";
import type { HttpError } from "../../src/http/index.js";
import { detect, labelIn, verdictIn } from "../../src/workbench/labels/detection.js";
import { excerptsOf } from "../../src/workbench/labels/excerpts.js";
import { FeatureLabels } from "../../src/workbench/labels/labels.js";
import { scripted, sendJson } from "../client/scripted.js";
import { npyFile, zipOf } from "../support/npz-bytes.js";
import { chatPath, closeAll, open, refusal, said } from "./asking.js";
import { type Answering, type Answers, stop, streams } from "./parts.js";

const home = mkdtempSync(join(tmpdir(), "tapline-labels-"));
test.after.each(closeAll);
test.after(() => rmSync(home, { recursive: true, force: true }));

const read = (text: string, at?: number, activation = 1) => {
  const tokens = text.split(/(?= )/);
  return { tokens, activations: tokens.map((_, place) => (place === at ? activation : 0)) };
};

test("texts with the feature are shown and held out in turn, strongest first", () => {
  const { shown, heldOut } = excerptsOf([
    read("one red car", 1, 2),
    read("no colour here"),
    read("a blue sky", 1, 4),
    read("so green it is", 1, 3),
    read("nothing to see"),
    read("the last one"),
  ]);
  assert.equal(shown, ["a «blue» sky", "one «red» car"]);
  assert.equal(heldOut, [
    { text: "so green it is", active: true },
    { text: "no colour here", active: false },
  ]);
});

test("no text is both shown and held out, and the numbers are limited and balanced", () => {
  const many = Array.from({ length: 100 }, (_, at) => read(`text ${at}`, at % 3 === 0 ? undefined : 1, at));
  const { shown, heldOut } = excerptsOf(many);
  const active = heldOut.filter((one) => one.active);
  assert.equal([shown.length, active.length, heldOut.length], [8, 15, 30]);
  const plain = shown.map((text) => text.replace(/[«»]/g, ""));
  assert.ok(heldOut.every(({ text }) => !plain.includes(text)));
});

test("long texts are cut around the strongest token", () => {
  const words = Array.from({ length: 60 }, (_, at) => `w${at}`).join(" ");
  const [shown] = excerptsOf([read(words, 30), read("b", 0)]).shown;
  const all = (shown ?? "").split(" ");
  assert.equal([all[0], all[12], all.at(-1)], ["w18", "«w30»", "w38"]);
});

test("answers become labels and verdicts", () => {
  assert.is(labelIn('\n "Names of countries."\nBecause …'), "Names of countries");
  assert.is(labelIn("  \n "), "");
  assert.is(labelIn("x".repeat(200)).length, 120);
  assert.equal(["Yes.", "no", "I would say No, yes", "Nothing", ""].map(verdictIn), [
    ...[true, false, false, undefined, undefined],
  ]);
});

test("detection counts hits, false alarms and unclear answers", async () => {
  const heldOut = ["a", "b", "c", "d"].map((text, at) => ({ text, active: at < 2 }));
  const answers: Record<string, string> = { a: "yes", b: "perhaps", c: "no", d: "yes" };
  const found = await detect("label", heldOut, async (question) => {
    assert.match(question, /^Description: label\n/);
    return answers[/Excerpt: (\w)/.exec(question)?.[1] ?? ""] as string;
  });
  const { low, high, ...counts } = found;
  assert.equal(counts, { active: 2, detected: 1, silent: 2, falsely: 1, unclear: 1, accuracy: 0.5 });
  // Wilson (1927) for 2 of 4: 0.5 +- z / (1 + z^2 / 4) * sqrt(1 / 16 + z^2 / 64).
  const z = 1.959963984540054;
  const half = (z / (1 + z ** 2 / 4)) * Math.sqrt(1 / 16 + z ** 2 / 64);
  assert.ok(Math.abs(low - (0.5 - half)) < 1e-12 && Math.abs(high - (0.5 + half)) < 1e-12);
  assert.is(
    detectionSentence(found),
    "Too few held-out examples to conclude (4). It fits 1 of 2 held-out excerpts with the feature and 1 of 2 without it " +
      "(accuracy 50.0 %, 95 % interval 15.0 % to 85.0 %). 1 answer was neither yes nor no and counts as wrong.",
  );
});

const id = "0123456789abcdef0123456789abcdef";
const sha256 = "ab".repeat(32);
/** Four texts of two tokens; feature 7 is active on the second token of the first three. */
const texts = ["red", "blue", "green", "house"].map((word) => ({
  ...{ tokens: ["a", ` ${word}`], token_ids: [1, 2], top: [[], []] },
}));
const job = { id, operation: "features", status: "completed", result: { texts, dictionary: { sha256 } } };
const array = (...values: number[]) => npyFile(Float32Array.from(values), [values.length]);
/** As the Lab writes whole numbers. */
const whole = (...values: number[]) => {
  const file = npyFile(new Float32Array(Int32Array.from(values).buffer), [values.length]);
  file.write("<i4", file.indexOf("<f4"), "latin1");
  return file;
};
const features = zipOf({
  token_ids: whole(1, 2, 1, 2, 1, 2, 1, 2),
  pointers: whole(0, 0, 2, 2, 3, 3, 4, 4, 5),
  indices: whole(3, 7, 7, 7, 3),
  values: array(9, 3, 2, 1, 9),
});
const lab: Answers = {
  [`GET /lab/v1/jobs/${id}`]: job,
  [`GET /lab/v1/jobs/${id}/artifacts/features.npz`]: ((response) => void response.end(features)) as Answering,
};
const answerOf = (question: string) =>
  question.startsWith("In the excerpts") ? "colours" : /blue/.test(question) ? "yes" : "no";

test("the served model proposes and tests; the label is private, marked and removable", async () => {
  const asked: string[] = [];
  const parts = await open({
    ...lab,
    [chatPath]: ((response, request) => {
      const { messages } = JSON.parse(request.body) as { messages: [{ content: string }] };
      asked.push(messages[0].content);
      streams([said(answerOf(messages[0].content), [])], [stop()])(response, request);
    }) as Answering,
  });
  await parts.services.look();
  const file = join(home, "workbench", "labels.json");
  const labels = new FeatureLabels(file, parts.services);
  const { created: _, ...found } = await labels.propose(
    { job: id, feature: 7 },
    new AbortController().signal,
  );
  const { low: __, high: ___, ...detection } = found.detection;
  assert.equal(
    { ...found, detection },
    {
      ...{ label: "colours", model: "m", host: null, proposedFrom: 2 },
      detection: { active: 1, detected: 1, silent: 1, falsely: 0, unclear: 0, accuracy: 1 },
    },
  );
  assert.match(asked[0] as string, /1\. a «red»\n2\. a «green»$/);
  assert.is(asked.length, 3);
  assert.is(statSync(file).mode & 0o777, 0o600);
  const later = new FeatureLabels(file, parts.services);
  assert.equal(Object.keys(await later.all()), [`${sha256} 7`]);
  await later.remove(sha256, 7);
  assert.equal(JSON.parse(readFileSync(file, "utf8")), {});
  assert.is((await refusal(later.remove(sha256, 7)))[0], 404);
});

test("an endpoint gets the question and its key; redirects and other answers are refused", async () => {
  const parts = await open(lab);
  const labels = new FeatureLabels(join(home, "other.json"), parts.services);
  let how: "answers" | "redirects" | "fails" | "chatters" = "answers";
  const service = await scripted(({ path, body }, response) => {
    // Following the redirect would get an answer.
    if (how === "redirects" && path !== "/elsewhere")
      response.writeHead(307, { Location: "/elsewhere" }).end();
    else if (how === "fails") sendJson(response, 401, { error: "no" });
    else if (how === "chatters") response.end("<html>");
    else {
      const { messages } = JSON.parse(body) as { messages: [{ content: string }] };
      sendJson(response, 200, { choices: [{ message: { content: answerOf(messages[0].content) } }] });
    }
  });
  try {
    const endpoint = { url: `${service.url}/v1/`, model: "judge", key: "secret" };
    const propose = () => labels.propose({ job: id, feature: 7, endpoint }, new AbortController().signal);
    const found = await propose();
    assert.equal([found.label, found.model, found.host], ["colours", "judge", new URL(service.url).host]);
    const [first] = service.seen;
    assert.equal([first?.path, first?.headers.authorization], ["/v1/chat/completions", "Bearer secret"]);
    assert.not.match(readFileSync(join(home, "other.json"), "utf8"), /secret/);
    for (const [case_, pattern] of [
      ["redirects", /did not answer/],
      ["fails", /returned status 401/],
      ["chatters", /returned no chat completion/],
    ] as const) {
      how = case_;
      const [status, sentence] = await refusal(propose());
      assert.is(status, 502);
      assert.match(sentence, pattern);
    }
  } finally {
    await service.close();
  }
});

test("too few texts and other jobs are refused before anything is asked", async () => {
  const { services } = await open(lab);
  const labels = new FeatureLabels(join(home, "none.json"), services);
  const { signal } = new AbortController();
  const few = await labels.propose({ job: id, feature: 8 }, signal).catch((error: HttpError) => error);
  assert.match(
    (few as HttpError).message,
    /at least two texts with the feature and one without it, got 0 and 0/,
  );
  const parts = await open({ [`GET /lab/v1/jobs/${id}`]: { ...job, operation: "sae" } });
  const [status] = await refusal(
    new FeatureLabels(join(home, "none.json"), parts.services).propose({ job: id, feature: 7 }, signal),
  );
  assert.is(status, 409);
});

test.run();
