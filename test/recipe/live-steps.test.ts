/** A recipe's live steps: what is asked, what it names, and what is written of it. Nothing runs. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { bodiesOf } from "../../src/recipe/live.js";
import { exchangesOf } from "../../src/recipe/live-answer.js";
import { livePage } from "../../src/recipe/live-page.js";
import type { LiveSession } from "../../src/recipe/live-steps.js";
import { runLiveStep } from "../../src/recipe/live-steps.js";
import { type Base, told } from "./a-recipe.js";

const post = (body: Record<string, unknown>, each?: Record<string, unknown>[]) => ({
  post: "/v1/chat/completions" as const,
  body,
  ...(each === undefined ? {} : { each }),
});

test("live requests: fields are filled in, and answers follow their request", () => {
  const step = post({ prompt: "p", temperature: 0 }, [{ prompt: "a" }, { temperature: 1, n: 2 }]);
  assert.equal(bodiesOf(step), [
    { prompt: "a", temperature: 0 },
    { prompt: "p", temperature: 1, n: 2 },
  ]);
  assert.equal(bodiesOf(post({ prompt: "p" })), [{ prompt: "p" }]);
  const tokens = [{ token: "x" }];
  const edits = [{ kind: "steer", layer: 2, rows: 3 }];
  const answers = [
    { choices: [{ text: "one", finish_reason: "length", tapline: { tokens, interventions: edits } }] },
    { choices: [{ message: { content: "two" } }, { message: { content: null }, finish_reason: null }] },
  ];
  const bare = { finish: "", tokens: [], interventions: [] };
  assert.equal(exchangesOf(step, answers), [
    { asked: "a", answer: "one", finish: "length", tokens, interventions: edits },
    { asked: "p", answer: "two", ...bare },
    { asked: "p", answer: "", ...bare },
  ]);
  assert.equal(exchangesOf(step, []), []);
  const asked = (body: Record<string, unknown>) => exchangesOf(post(body), [{ choices: [{}] }])[0]?.asked;
  assert.equal(
    [
      asked({ prompt: ["a", "b"] }),
      asked({ messages: [{ role: "user", content: "Hi" }] }),
      asked({
        messages: [
          { role: "system", content: "Be." },
          { role: "user", content: [{ type: "text" }] },
        ],
      }),
    ],
    ['["a","b"]', "Hi", 'system: Be.\nuser: [{"type":"text"}]'],
  );
});

test("a live step names what earlier ones made, in every place where it may", () => {
  const group = (words: string) => Array.from({ length: 6 }, (_, at) => `${words} ${at}`);
  const pair = { positive: group("yes"), negative: group("no") };
  const vector = { id: "v", what: "a vector", live: { vector: { name: "vec", ...pair, layers: [2] } } };
  const probe = { id: "p", what: "a probe", live: { probe: { name: "prb", ...pair, layer: 2 } } };
  const asking = (tapline: object) => (r: Base) => {
    r.steps.push(vector, probe, {
      id: "ask",
      what: "asked",
      live: { post: "/v1/completions", body: { prompt: "a", tapline } },
    });
  };
  const steer = { kind: "steer", vector: "vec", strength: 1 };
  assert.is(
    told(
      asking({
        interventions: [{ ...steer, when: { probe: "prb", above: 0.5 } }],
        watch: { projections: ["vec"], probes: ["prb"] },
        stop_when: { probe: "prb", above: 0.5 },
      }),
    ).slice(0, 9),
    "accepted:",
  );
  for (const [tapline, sentence] of [
    [{ interventions: [{ ...steer, vector: "prb" }] }, "a vector prb"],
    [{ interventions: [{ ...steer, vector: "other" }] }, "a vector other"],
    [{ interventions: [{ ...steer, when: { probe: "vec", above: 0.5 } }] }, "a probe vec"],
    [{ watch: { projections: ["prb"] } }, "a vector prb"],
    [{ watch: { probes: ["vec"] } }, "a probe vec"],
    [{ stop_when: { probe: "vec", above: 0.5 } }, "a probe vec"],
  ] as const)
    assert.is(told(asking(tapline)), `Step ask: body: no earlier step makes ${sentence}.`);
  assert.is(
    told(asking({ interventions: [{ ...steer, vector: { feature: ["d", 1] } }] })),
    "Step ask: body: recipes cannot include a dictionary for a feature.",
  );
  const random = (change: object) => (r: Base) => {
    r.steps.push(vector, probe, {
      id: "r",
      what: "random",
      live: { random: { name: "noise", like: "vec", seed: 1, ...change } },
    });
  };
  assert.is(told(random({})).slice(0, 9), "accepted:");
  assert.is(told(random({ like: "prb" })), "Step r: no earlier step makes a vector prb.");
  assert.is(told(random({ name: "prb" })), "Step r: prb was already made by an earlier step.");
  const chat = (body: object) => (r: Base) => {
    r.steps.push({ id: "ask", what: "asked", live: { post: "/v1/chat/completions", body } });
  };
  assert.is(told(chat({ prompt: "a" })), "Step ask: body: prompt is not a field of /v1/chat/completions.");
  assert.is(told(chat({ messages: [{ role: "user", content: "a" }] })).slice(0, 9), "accepted:");
});

test("a random vector differs per layer and seed, with the layer's norm", async () => {
  const sent: Buffer[] = [];
  const claimed: string[] = [];
  const live = {
    claims: { claim: async (shelf: string, name: string) => void claimed.push(`${shelf} ${name}`) },
    http: {
      async json(path: string, { method, body }: { method?: string; body?: Buffer }) {
        if (method === "PUT") sent.push(Buffer.from(body as Uint8Array));
        else assert.is(path, "/lab/vectors/a%2Fb");
        return {
          n_embd: 16,
          layers: [
            { layer: 3, length: 2 },
            { layer: 5, length: 7 },
          ],
        };
      },
    },
  } as unknown as LiveSession;
  const { signal } = new AbortController();
  for (const seed of [1, 1, 2]) {
    await runLiveStep(live, { random: { name: "noise", like: "a/b", seed } }, signal, () => {});
  }
  assert.equal(claimed, Array(3).fill("/lab/vectors noise"));
  /** A tensor of a safetensors file: a head of so many bytes, JSON, and the numbers. */
  const row = (file: Buffer, name: string) => {
    const size = Number(file.readBigUInt64LE(0));
    const { dtype, shape, data_offsets: place } = JSON.parse(file.toString("utf8", 8, 8 + size))[name];
    assert.equal([dtype, shape, place[1] - place[0]], ["F32", [16], 64]);
    return Array.from({ length: 16 }, (_, at) => file.readFloatLE(8 + size + place[0] + 4 * at));
  };
  const [one, same, other] = sent as [Buffer, Buffer, Buffer];
  assert.ok(one.equals(same));
  const [three, five] = [row(one, "layer_3"), row(one, "layer_5")];
  for (const [values, length] of [
    [three, 2],
    [five, 7],
    [row(other, "layer_3"), 2],
  ] as const) {
    assert.ok(Math.abs(Math.hypot(...values) - length) < 1e-5);
  }
  // The cosine of two of them is that of chance, and not one.
  const cosine = (a: number[], b: number[]) =>
    a.reduce((sum, value, at) => sum + value * (b[at] as number), 0) / Math.hypot(...a) / Math.hypot(...b);
  assert.ok(Math.abs(cosine(three, five)) < 0.9);
  assert.ok(Math.abs(cosine(three, row(other, "layer_3"))) < 0.9);
});

test("a live step's page: what was asked, answered and done, and everything as JSON", () => {
  const live = post({ messages: [{ role: "user", content: "a & b" }] });
  const edits = [
    { kind: "steer", layer: 5, rows: 3, mean_change_length: 1.23456, mean_row_length: 20 },
    { kind: "ablate", layer: 6, rows: 1, mean_row_length: 20 },
  ];
  const tokens = [{ token: "A", probes: { one: 0.5, two: 0.1 } }, { token: "B", probes: {} }, { token: "C" }];
  const choice = (more: object) => ({ message: { content: "AB<C>" }, finish_reason: "stop", ...more });
  const result = {
    responses: [
      { choices: [choice({ tapline: { interventions: edits } }), choice({ tapline: { tokens } })] },
    ],
  };
  const page = livePage("what", "demo", live, result);
  assert.match(page, "<p>/v1/chat/completions of demo</p>");
  assert.match(page, "<td>a &amp; b</td>\n<td>AB&lt;C&gt;</td>\n<td>stop</td>");
  assert.match(
    page,
    "<td>steer at block 5: 3 positions, mean change 1.235 of norm 20<br>ablate at block 6: 1 positions<br></td>",
  );
  // Each token on the score of its first probe, of which 0.7 is the strongest shade.
  assert.match(page, '<td><span class="token" style="--score: 0.35">A<sub>0.50</sub></span>B</td>');
  assert.match(page, "<summary>The request</summary><pre>{\n &quot;post&quot;");
  assert.match(page, "<summary>The answer</summary><pre>{\n &quot;responses&quot;");
  const made = livePage("what", "demo", { random: { name: "n", like: "v", seed: 1 } }, {});
  assert.match(made, "<p>Made on demo</p>");
  assert.not.match(made, "<table>");
});

test.run();
