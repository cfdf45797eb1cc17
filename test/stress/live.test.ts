import { mkdtempSync, rmSync } from "node:fs";
import { request as open } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { liveLimits } from "../../src/contracts/live-limits.js";
import { startServer, type TestServer, untilIdle } from "../inference/support/serving.js";
import { alive } from "../support/alive.js";
import { npyFile, zipOf } from "../support/npz-bytes.js";
import { TestRandom } from "../support/random.js";
import { until } from "../support/until.js";

const requests = Number(process.env.TAPLINE_STRESS_LIVE ?? 2000);
const layer = 5;
const question = (country: string) => `The capital of ${country} is`;
const invented = ["Brovia", "Quenland", "Tarsovia", "Melgria", "Zondia", "Plavenia", "Urdania", "Fenroy"];
const real = ["France", "Germany", "Spain", "Italy", "Portugal", "Poland", "Norway", "Japan"];
/** Longer than a batch of 32 tokens, so that it is computed in chunks, and the same for all. */
const prefix = "The review says that the film was good. ".repeat(6);

/** Between log-probabilities of an answer alone and in company: the rounding of its batch (docs/contributing/verification.md). */
const rounding = 0.02;

interface Case {
  prompt: string;
  tapline?: object;
}
interface Token {
  text: string;
  logprob: number;
  /** How much more probable it was than the next one. */
  lead: number;
}
interface Answer {
  tokens: Token[];
  capture?: string;
}

const steer = (strength: number, more: object = {}) => ({
  interventions: [{ kind: "steer", vector: "unknown", layer, strength, strength_unit: "vector", ...more }],
});

/** Every one has neighbours that begin alike and wear something else, or nothing. */
const asked: Case[] = [
  ...[prefix, ""].flatMap((start) => [
    ...["France", "Drovenia"].map((country) => ({ prompt: start + question(country) })),
    { prompt: start + question("France"), tapline: steer(2) },
    { prompt: start + question("Drovenia"), tapline: steer(-2) },
    { prompt: start + question("France"), tapline: steer(2, { positions: "generated" }) },
    { prompt: start + question("France"), tapline: steer(2, { positions: "last" }) },
    { prompt: start + question("Spain"), tapline: steer(2, { positions: [[0, 3]] }) },
    {
      prompt: start + question("Spain"),
      tapline: { interventions: [{ kind: "scale", layer: 3, strength: 0.5 }] },
    },
    {
      prompt: start + question("Spain"),
      tapline: { interventions: [{ kind: "clamp", vector: "unknown", layer, max: 0 }] },
    },
    {
      prompt: start + question("Japan"),
      tapline: { watch: { layers: [2, layer], norms: true, lens: 2, probes: ["odd"], positions: "all" } },
    },
    {
      prompt: start + question("Japan"),
      tapline: { watch: { layers: [1, 4], states: true, positions: "all" } },
    },
    { prompt: start + question("Italy"), tapline: steer(3, { when: { probe: "odd", above: 0.999 } }) },
  ]),
];

const bodyOf = ({ prompt, tapline }: Case) => ({
  prompt,
  max_tokens: 8,
  temperature: 0,
  logprobs: 2,
  ...(tapline && { tapline }),
});

function answerOf(body: {
  choices: {
    logprobs: { tokens: string[]; token_logprobs: number[]; top_logprobs: Record<string, number>[] };
    tapline?: { capture?: { id: string } };
  }[];
}): Answer {
  const [choice] = body.choices;
  const { tokens, token_logprobs: chosen, top_logprobs: top } = choice!.logprobs;
  const capture = choice!.tapline?.capture?.id;
  return {
    tokens: tokens.map((text, place) => {
      const [best = 0, next = Number.NEGATIVE_INFINITY] = Object.values(top[place]!).sort((a, b) => b - a);
      return { text, logprob: chosen[place]!, lead: best - next };
    }),
    ...(capture !== undefined && { capture }),
  };
}

/** The differences of an answer from the one given alone; nothing after a tie, where the two may go separate ways. */
function difference(found: Answer, alone: Answer): string | undefined {
  for (const [place, expected] of alone.tokens.entries()) {
    const token = found.tokens[place];
    if (token?.text !== expected.text) {
      return expected.lead <= rounding
        ? undefined
        : `${JSON.stringify(token)} for ${JSON.stringify(expected)}`;
    }
    if (Math.abs(token.logprob - expected.logprob) > rounding) {
      return `${token.logprob} for ${expected.logprob} of ${JSON.stringify(expected.text)}`;
    }
  }
  return found.tokens.length === alone.tokens.length ? undefined : `${found.tokens.length} tokens`;
}

/** A client that disconnects: before there is an answer, or after this many parts of it. */
function leave(url: string, body: object, parts: number): Promise<void> {
  return new Promise((resolve) => {
    let seen = 0;
    const request = open(`${url}/v1/completions`, { method: "POST", agent: false }, (response) => {
      response.on("error", () => {}).on("end", resolve);
      response.on("data", () => {
        if (++seen >= parts) request.destroy();
      });
    });
    request.on("error", () => {}).on("close", resolve);
    request.end(JSON.stringify({ ...body, stream: true }), () => {
      if (parts === 0) request.destroy();
    });
  });
}

/** Resources outside JavaScript: native objects, caches, threads. */
const nativeBytes = () => {
  const { rss, heapTotal, external } = process.memoryUsage();
  return rss - heapTotal - external;
};

async function prepare(server: TestServer): Promise<void> {
  const texts = { positive: invented.map(question), negative: real.map(question) };
  const made = await server.post("/lab/vectors", { name: "unknown", ...texts, layers: [layer] });
  assert.is(made.status, 201, JSON.stringify(made.body));
  const width = server.service.engine.info.nEmbd;
  const one = (value: number) => npyFile(new Float32Array(width).fill(value), [width]);
  const probe = { weight: one(0.01), mean: one(0), std: one(1), bias: npyFile(Float32Array.of(0), []) };
  const put = await server.put("/lab/probes/odd?layer=4", zipOf(probe));
  assert.is(put.status, 200, JSON.stringify(put.body));
}

test(`${requests} mixed requests, a third cancelled: each equals its lone run`, async () => {
  const home = mkdtempSync(join(tmpdir(), "tapline-stress-live-"));
  const server = await startServer({ home, parallel: 4, batch: 32 });
  const random = new TestRandom(15);
  try {
    await prepare(server);
    const ask = async (each: Case, more: object = {}) => {
      const { status, body } = await server.post("/v1/completions", { ...bodyOf(each), ...more });
      assert.is(status, 200, JSON.stringify(body));
      return answerOf(body);
    };
    const alone: Answer[] = [];
    for (const each of asked) alone.push(await ask(each, { cache_prompt: false }));
    // A hook that does nothing would pass everything that follows.
    const texts = new Set(alone.map(({ tokens }) => tokens.map(({ text }) => text).join("")));
    assert.ok(texts.size >= 8, `${texts.size} different answers; the edits do nothing`);

    await untilIdle(server.service);
    const before = alive();
    const problems: string[] = [];
    const counted = { answered: 0, left: 0, retried: 0, captures: 0 };
    let remaining = requests;
    let halfway: number | undefined;
    const client = async () => {
      while (remaining-- > 0) {
        if (remaining < requests / 2) halfway ??= nativeBytes();
        const index = random.below(asked.length);
        const each = asked[index]!;
        const leaves = random.below(3) === 0;
        const again = random.below(2) === 0;
        if (leaves) {
          counted.left++;
          await leave(server.url, { ...bodyOf(each), max_tokens: 200, ignore_eos: true }, random.below(4));
          if (!again) continue;
          // As a client that lost its connection does: the same once more, at once.
          counted.retried++;
        }
        const found = await ask(each);
        counted.answered++;
        if (found.capture !== undefined) counted.captures++;
        const wrong = difference(found, alone[index]!);
        if (wrong !== undefined) problems.push(`${JSON.stringify(each)}: ${wrong}`);
      }
    };
    await Promise.all(Array.from({ length: 8 }, client));
    await untilIdle(server.service);
    assert.equal(problems.slice(0, 5), [], `${problems.length} of ${counted.answered} answers are wrong`);
    assert.equal(server.faults, []);

    // Of a request that was left, the last word may still be on its way.
    await until(() => isDeepStrictEqual(alive(), before), "the addon's counts are the former ones");
    const { busy_slots, deferred } = await server.service.engine.metrics();
    assert.equal([busy_slots, deferred], [0, 0]);
    const { row_captures: rows } = (await server.get("/stats")).body;
    // Those of clients that went away may be kept, too; none is kept twice, and none beyond the bound.
    assert.ok(rows.bytes <= liveLimits.captures_bytes, `${rows.bytes} bytes of captures`);
    assert.ok(rows.kept + rows.dropped >= counted.captures, `${rows.kept} of ${counted.captures} captures`);
    assert.ok(rows.kept + rows.dropped <= counted.captures + counted.left, `${rows.kept} captures`);
    const { captures } = (await server.get("/lab/captures")).body;
    assert.is(new Set(captures.map(({ id }: { id: string }) => id)).size, rows.kept);
    for (const { id } of captures) server.service.rows.remove(id);
    assert.is((await server.get("/stats")).body.row_captures.bytes, 0);
    const names = (noun: string, list: { name: string }[]) => list.map(({ name }) => `${noun} ${name}`);
    assert.equal(
      [
        ...names("vector", (await server.get("/lab/vectors")).body.vectors),
        ...names("probe", (await server.get("/lab/probes")).body.probes),
      ],
      ["vector unknown", "probe odd"],
    );
    const grown = nativeBytes() - (halfway ?? 0);
    console.log(
      `      ${counted.answered} answered, ${counted.left} left, ${counted.retried} retried, ${rows.kept} captures; ` +
        `${(grown / 2 ** 20).toFixed(1)} MiB more than halfway`,
    );
    // A thousand requests that left 64 KiB each would show.
    assert.ok(grown < 64 * 2 ** 20, `${grown} bytes more than halfway`);
    const after = await ask(asked[0]!, { cache_prompt: false });
    assert.is(difference(after, alone[0]!), undefined);
  } finally {
    await server.close();
    rmSync(home, { recursive: true, force: true });
  }
});

test.run();
