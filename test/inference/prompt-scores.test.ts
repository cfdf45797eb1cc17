/** Prompts that answers begin with, on a stand-in for the engine; and which parameters the description requires. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { HttpError } from "../../src/http/index.js";
import { servingDocument } from "../../src/inference/endpoints.js";
import { PromptScores } from "../../src/inference/prompt-scores.js";
import type { Engine } from "../../src/native/engine.js";
import { NativeError } from "../../src/native/index.js";

const { signal } = new AbortController();
const bytes = (text: string) => new TextEncoder().encode(text);
const pieces = new Map([
  [0, bytes("<s>")],
  [1, bytes("ab")],
  [2, bytes(" c")],
  [3, bytes("\ufeff")],
]);

function scores(more: { tokens?: number[]; slotContext?: number; fails?: Error } = {}) {
  const asked: { tokens: Int32Array; top: number }[] = [];
  const engine = {
    info: { nVocab: 4, slotContext: more.slotContext ?? 100 },
    request: async (route: string, body: { content?: string }) => ({
      ...{ status: 200, contentType: "", times: [], parts: null },
      body: JSON.stringify(
        route === "tokenize"
          ? { tokens: more.tokens ?? [0, 1, 2] }
          : { content: `said ${body.content ?? ""}` },
      ),
    }),
    score: async (request: { tokens: Int32Array; top: number }) => {
      asked.push(request);
      if (more.fails) throw more.fails;
      const { top } = request;
      const rows = request.tokens.length - 1;
      return {
        ...{
          top,
          pieces,
          logProbabilities: Float64Array.from({ length: rows }, (_, row) =>
            row === 0 ? Number.NEGATIVE_INFINITY : -row,
          ),
        },
        topIds: Int32Array.from({ length: rows * top }, (_, i) => i % 3),
        topLogProbabilities: Float64Array.from({ length: rows * top }, (_, i) => -i / 4),
      };
    },
  } as unknown as Engine;
  const echo = (prompts: (string | number[])[], top: number | undefined = undefined, answers = 1) =>
    new PromptScores(engine).echo({ prompts, top, answers }, signal);
  const refusal = async (prompts: (string | number[])[], top = 0, answers = 1) =>
    echo(prompts, top, answers).then(
      () => "taken",
      ({ status, message, param, code }: HttpError) => [status, message, param, code],
    );
  return { echo, refusal, asked };
}

test("a prompt's tokens with alternatives include those that the tokenizer adds", async () => {
  const { echo, asked } = scores();
  const least = -3.4028234663852886e38;
  const [echoed] = await echo(["ab c"], 2);
  assert.equal(echoed, {
    ...{ text: "ab c", before: 3 },
    scored: [
      { bytes: pieces.get(0), logprob: null, top: null },
      {
        ...{ bytes: pieces.get(1), logprob: least },
        top: [
          { bytes: pieces.get(0), logprob: 0 },
          { bytes: pieces.get(1), logprob: -0.25 },
        ],
      },
      {
        ...{ bytes: pieces.get(2), logprob: -1 },
        top: [
          { bytes: pieces.get(2), logprob: -0.5 },
          { bytes: pieces.get(0), logprob: -0.75 },
        ],
      },
    ],
  });
  assert.equal([[...asked[0]!.tokens], asked[0]!.top], [[0, 1, 2], 2]);
  // What came as tokens is what they say, and so is a text that the tokenizer changed.
  for (const prompt of [[0, 1, 2], "AB c"]) {
    const { text, before } = (await echo([prompt], 0))[0]!;
    assert.equal([text, before], ["<s>ab c", 0]);
  }
  const [marked] = await scores({ tokens: [3, 1] }).echo(["ab"], 0);
  assert.equal([marked!.text, marked!.before], ["ab", 1], "a byte order mark is a character");
  assert.equal(await echo(["x", [1, 2]]), [
    { text: "x", scored: [] },
    { text: "said ", scored: [] },
  ]);
});

test("prompts are scored one at a time, also after a failed pass", async () => {
  const begun: ((error: Error) => void)[] = [];
  const engine = {
    info: { nVocab: 4, slotContext: 100 },
    score: () => new Promise((_, reject) => begun.push(reject)),
  } as unknown as Engine;
  const prompts = new PromptScores(engine);
  const ask = () =>
    prompts.echo({ prompts: [[0, 1]], top: 0, answers: 1 }, signal).catch((error: Error) => error.message);
  const answers = [ask(), ask()];
  await new Promise((resolve) => setImmediate(resolve));
  for (const [place, sentence] of ["one", "two"].entries()) {
    assert.is(begun.length, place + 1);
    begun[place]!(new Error(sentence));
    assert.is(await answers[place], sentence);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.is(begun.length, 2);
});

test("prompts that are too long, too large to report or not scorable are refused", async () => {
  const full = scores({ slotContext: 3 });
  assert.equal(await full.refusal(["ab c"]), [
    ...[
      400,
      "prompt: 3 tokens and an answer do not fit into the context of 3.",
      "prompt",
      "context_length_exceeded",
    ],
  ]);
  assert.is(await scores({ slotContext: 4 }).refusal(["ab c"]), "taken");
  const most = 1_048_576;
  // So many alternatives and the token itself, for each of some answers.
  assert.is(await scores({ slotContext: most }).refusal([new Array(1024).fill(1)], 255, 4), "taken");
  assert.equal(
    (await scores({ slotContext: most }).refusal([new Array(1024).fill(1), [1]], 255, 4)).slice(0, 3),
    [
      ...[
        400,
        "logprobs: with echo, at most 1048576 log-probabilities of prompt tokens per answer, got 1049600; request fewer prompts, alternatives or answers.",
        "logprobs",
      ],
    ],
  );
  assert.equal(await scores().refusal([[1, 4]]), [
    400,
    "tokens: the vocabulary has 4 tokens, got 4.",
    "tokens",
    null,
  ]);
  for (const [code, ...told] of [
    ["UNSUPPORTED_ARCHITECTURE", 400, "logprobs: Why.", "logprobs", null],
    ["OUT_OF_MEMORY", 503, "Why.", null, null],
    ["COMPUTE", 500, "Why.", null, null],
    ["CANCELLED", undefined, "Why.", undefined, "CANCELLED"],
  ] as const) {
    assert.equal(await scores({ fails: new NativeError(code, "Why.") }).refusal(["ab c"]), told, code);
  }
  assert.equal(await scores({ fails: new TypeError("A fault.") }).refusal(["ab c"]), [
    undefined,
    "A fault.",
    undefined,
    undefined,
  ]);
});

test("the description requires what a path holds, and of a capture's features the dictionary", () => {
  const { paths } = servingDocument("http://x") as unknown as {
    paths: Record<
      string,
      Record<string, { parameters?: { name: string; required: boolean }[] }> & {
        parameters?: { name: string; required: boolean }[];
      }
    >;
  };
  const required = (list: { name: string; required: boolean }[] = []) =>
    list.map((one) => [one.name, one.required]);
  const [capture, features] = [paths["/lab/captures/{id}"]!, paths["/lab/captures/{id}/features"]!];
  assert.equal(
    [required(capture.parameters), required(features.parameters)],
    [[["id", true]], [["id", true]]],
  );
  assert.equal(required(capture.get!.parameters), [["format", false]]);
  assert.equal(required(features.get!.parameters), [
    ["dictionary", true],
    ["top", false],
  ]);
});

test.run();
