/** A stream's parts event by event, and completions: by hand. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { CompletionForm } from "../../src/inference/forms/completion.js";
import { type AnswerForm, translate } from "../../src/inference/forms/form.js";
import { answer, usage } from "./support/an-answer.js";

test("a stream's part is translated event by event; other lines are ignored", () => {
  const calls: string[] = [];
  const form: AnswerForm = {
    whole: () => ({}),
    event: ({ id }) => {
      calls.push(id);
      return `<${id}>`;
    },
    end: () => "<end>",
    fault: (sentence) => `<${sentence}>`,
  };
  const text = translate(
    form,
    ': note\ndata: {"id":"1","choices":[]}\n\ndata: {"error":{"message":"bad"}}\n\nid: 3\n\ndata: [DONE]\n\n',
  );
  assert.is(text, "<1><bad><end>");
  assert.equal(calls, ["1"]);
});

const lists = ({ choices: [choice] }: { choices: Record<string, unknown>[] }) =>
  (choice as Record<string, unknown>).logprobs as { text_offset: number[]; top_logprobs: object[] };

test("completions: the prompt in front, log-probabilities as parallel lists", () => {
  const bytes = (text: string) => Buffer.from(text);
  const prompt = {
    text: "Hé",
    before: 1,
    scored: [
      { bytes: bytes("\u2581"), logprob: null, top: null },
      {
        bytes: bytes("H"),
        logprob: -1,
        top: [
          { bytes: bytes("T"), logprob: -0.5 },
          { bytes: bytes("T"), logprob: -2 },
        ],
      },
      { bytes: Buffer.from([0xc3]), logprob: -2, top: [{ bytes: Buffer.from([0xc3]), logprob: -2 }] },
      { bytes: Buffer.from([0xa9]), logprob: -3, top: [] },
    ],
  };
  const form = new CompletionForm([prompt], 1, 2, false);
  const first = form.whole(
    answer({
      text: " x",
      logprobs: { content: [{ token: " x", logprob: -4, top_logprobs: [{ token: " y", logprob: -3 }] }] },
    }),
  ) as { choices: Record<string, unknown>[] };
  assert.equal(first.choices[0], {
    index: 0,
    finish_reason: null,
    text: "Hé x",
    logprobs: {
      tokens: ["\u2581", "H", "bytes:\\xc3", "bytes:\\xa9", " x"],
      token_logprobs: [null, -1, -2, -3, -4],
      top_logprobs: [
        null,
        { T: -0.5, H: -1 },
        { "bytes:\\xc3": -2 },
        { "bytes:\\xa9": -3 },
        { " y": -3, " x": -4 },
      ],
      text_offset: [0, 0, 1, 1, 2],
    },
  });
  // What follows does not begin with the prompt again.
  const next = form.whole(
    answer({ text: "z", logprobs: { content: [{ token: "z", logprob: -5 }] } }),
  ) as typeof first;
  assert.equal(next.choices[0]?.text, "z");
  assert.equal(lists(next).text_offset, [4]);
  // Prompts of several answers each: 0 and 1 are the first prompt's, 2 and 3 the second's.
  const two = new CompletionForm(
    [
      { text: "a", scored: [] },
      { text: "b", scored: [] },
    ],
    2,
    0,
    false,
  );
  const texts = [0, 1, 2, 3, 4].map(
    (index) => (two.whole(answer({ index, text: "!" })) as typeof first).choices[0]?.text,
  );
  assert.equal(texts, ["a!", "a!", "b!", "b!", "a!"]);
  assert.not(
    "logprobs" in ((two.whole(answer({ index: 9, text: "" })) as typeof first).choices[0] as object),
  );
  // With no alternatives asked for, the token alone.
  const alone = new CompletionForm([], 1, 0, false).whole(
    answer({
      text: "x",
      logprobs: {
        content: [{ token: "x", bytes: [120], logprob: -1, top_logprobs: [{ token: "y", logprob: 0 }] }],
      },
    }),
  ) as typeof first;
  assert.equal(lists(alone).top_logprobs, [{ x: -1 }]);
  // Where no token was asked for, the engine's one is left out, and so is its count.
  const silent = new CompletionForm([{ text: "p", scored: [] }], 1, 0, true);
  const said = silent.whole(
    answer(
      { text: "x", finish_reason: "stop", logprobs: { content: [{ token: "x", logprob: -1 }] } },
      { usage },
    ),
  ) as typeof first & { usage: object };
  assert.equal(said.choices[0], {
    index: 0,
    finish_reason: "length",
    text: "p",
    logprobs: { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] },
  });
  assert.equal(said.usage, { ...usage, completion_tokens: 0, total_tokens: 10 });
  assert.is((silent.whole(answer({ index: 5, text: "x" })) as typeof first).choices[0]?.finish_reason, null);
  assert.is(form.event(answer({ text: "q" })).slice(0, 6), "data: ");
  assert.is(form.end(), "data: [DONE]\n\n");
  assert.is(
    form.fault("No."),
    'data: {"error":{"message":"No.","type":"server_error","param":null,"code":null}}\n\n',
  );
});

test.run();
