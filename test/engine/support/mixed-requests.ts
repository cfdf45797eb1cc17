import { demoModelPath } from "../../../src/models/resolve.js";
import type { Edit, LivePositions } from "../../../src/native/edit.js";
import { Engine, type TwinReport } from "../../../src/native/engine.js";
import type { LivePlan } from "../../../src/native/live.js";
import { TestRandom } from "../../support/random.js";
import { until } from "../../support/until.js";

/** Between log-probabilities of an answer alone and in company: the rounding of its batch (docs/contributing/verification.md). */
const rounding = 0.02;
/** Longer than a batch of 32 tokens, so that it is computed in chunks, and the same for all. */
const prefix = "The review says that the film was good. ".repeat(6);
const question = (country: string) => `The capital of ${country} is`;

interface Case {
  name: string;
  prompt: string;
  plan?: LivePlan;
  more?: object;
  /** It reads what the graph cannot compute. */
  outside?: boolean;
  /** An answer in the batch is compared with the same request alone. */
  alone: boolean;
}

interface Token {
  id: number;
  logprob: number;
  /** How much more probable it was than the next one. */
  lead: number;
}

export interface MixedReport {
  twin: TwinReport;
  answered: number;
  /** Whose client went away. */
  left: number;
  /** And asked once more, at once. */
  retried: number;
  /** Tokens of answers that were compared with those of a lone run. */
  compared: number;
  /** Where two tokens were as probable as each other up to rounding, and the answers went separate ways. */
  ties: string[];
  problems: string[];
  /** Different greedy answers among the lone ones. */
  texts: number;
  /** Answers by where their edits and readings were computed: "graph", "callback", "graph and callback". */
  computed: Record<string, number>;
}

export interface MixedOptions {
  edits?: "graph" | "callback";
  /** Only requests that the graph can compute: no lens and no points inside a block. */
  inGraph?: boolean;
}

/** Every one begins as others do that wear something else, or nothing. */
function askedOf(hidden: number, nLayer: number, inGraph: boolean): Case[] {
  const random = new TestRandom(4);
  const vector = random.normals(hidden);
  const other = random.normals(hidden);
  const last = nLayer - 1;
  const steer = (strength: number, more: Partial<Edit> = {}): Edit => {
    return { layer: 4, vector, strength, unit: "row_norm", positions: "all", ...more };
  };
  const watch = (positions: LivePositions) => {
    return { layers: [1, 4, last], positions, norms: true, ...(!inGraph && { lensTop: 2 }) };
  };
  const probe = { name: "odd", layer: 3, weight: Float64Array.from(other, (value) => value / 50), bias: 0 };
  const edits: [string, Edit[]][] = [
    ["all", [steer(0.7)]],
    ["against", [steer(-0.7)]],
    ["prompt", [steer(0.7, { positions: "prompt" })]],
    ["generated", [steer(0.7, { positions: "generated" })]],
    ["last", [steer(0.7, { positions: "last" })]],
    ["first tokens", [steer(0.9, { positions: [[0, 3]] })]],
    ["from the prompt's end", [steer(0.9, { positions: [[-3, -2]] })]],
    ["first block", [steer(0.5, { layer: 0 })]],
    ["last block", [steer(0.9, { layer: last })]],
    ["scale", [{ layer: 3, scale: 0.5, positions: "all" }]],
    ["ablate", [{ layer: 5, scale: 0, positions: "generated" }]],
    ["patch", [{ layer: 5, scale: 0, vector: other, strength: 6, positions: "last" }]],
    ["project out", [{ layer: 2, kind: "project_out", vector: other, positions: "all" }]],
    ["clamp", [{ layer: 2, kind: "clamp", vector, min: 5, max: 6, unit: "unit", positions: "all" }]],
    ["several", [steer(0.4), steer(0.4, { layer: 4, vector: other }), steer(0.3, { layer: 6 })]],
  ];
  const neutral: Edit[][] = [
    [steer(0)],
    [{ layer: 3, scale: 1, positions: "all" }],
    [{ layer: 3, kind: "clamp", vector, strength: 0, min: 5, positions: "all" }],
  ];
  const inside: Omit<Case, "prompt" | "alone">[] = [
    { name: "watched inside", outside: true, plan: { watch: { ...watch("all"), point: "mid" } } },
    {
      ...{ name: "heads watched, steered", outside: true },
      plan: {
        edits: [steer(0.7)],
        watch: { layers: [2], positions: "all", norms: true, point: "head_out", heads: [1] },
      },
    },
  ];
  const list: Omit<Case, "prompt" | "alone">[] = [
    { name: "plain" },
    { name: "plain, drawn", more: { temperature: 1, seed: 5 } },
    { name: "plain, two", more: { n: 2, temperature: 1, seed: 6 } },
    ...edits.map(([name, plan]) => ({ name, plan: { edits: plan } })),
    ...neutral.map((plan) => ({ name: "neutral", plan: { edits: plan } })),
    { name: "watched", outside: !inGraph, plan: { watch: watch("all") } },
    ...(inGraph ? [] : inside),
    {
      ...{ name: "watched and steered", outside: !inGraph },
      plan: { edits: [steer(0.7)], watch: watch("generated") },
    },
    { name: "beside itself", plan: { edits: [steer(0.7)], pair: true } },
    { name: "steered, two", plan: { edits: [steer(0.7)] }, more: { n: 2, temperature: 1, seed: 7 } },
    {
      name: "once a probe says so",
      plan: {
        edits: [steer(0.9)],
        gates: [0],
        probes: [probe],
        conditions: [{ probe: 0, bound: 0.5, above: true, tokens: 1 }],
      },
    },
  ];
  return list.flatMap((each) =>
    [prefix, ""].map((start) => ({
      ...each,
      name: `${each.name}${start === "" ? "" : ", in chunks"}`,
      prompt: start + question("France"),
      // Numbers that are drawn may fall between two tokens' shares.
      alone: !("temperature" in (each.more ?? {})),
    })),
  );
}

/**
 * So many requests of all kinds at once, a third of whose clients go away, in an engine whose every batch is computed a
 * second time without edits. All numbers are drawn from `seed`; the order in which requests meet is the machine's.
 */
export async function mixedRequests(
  count: number,
  seed: number,
  { edits = "callback", inGraph = false }: MixedOptions = {},
): Promise<MixedReport> {
  const engine = await Engine.open({
    ...{ path: demoModelPath, id: "demo", threads: 1, parallel: 4, batch: 32, ctxSize: 256 },
    ...{ cacheRamMiB: 0, twin: true, edits },
  });
  try {
    const asked = askedOf(engine.info.nEmbd, engine.info.nLayer, inGraph);
    const computed: Record<string, number> = {};
    const problems: string[] = [];
    const bodyOf = ({ prompt, more }: Case) => ({
      ...{ prompt, max_tokens: 8, ignore_eos: true, temperature: 0, logprobs: 2, ...more },
    });
    const ask = async (each: Case, more: object = {}): Promise<Token[]> => {
      const { status, body } = await engine.request(
        "completion",
        { ...bodyOf(each), ...more },
        undefined,
        each.plan,
      );
      if (status !== 200) throw new Error(`${each.name}: ${body}`);
      const expected = edits === "callback" || each.outside ? "callback" : "graph";
      for (const where of computedIn(body)) {
        computed[where] = (computed[where] ?? 0) + 1;
        if (where !== expected) problems.push(`${each.name}: computed in ${where}`);
      }
      return tokensOf(body);
    };
    const random = new TestRandom(seed);
    const counted = { answered: 0, left: 0, retried: 0, compared: 0 };
    const answers: { index: number; found: Token[] }[] = [];
    let remaining = count;
    const client = async () => {
      while (remaining-- > 0) {
        const index = random.below(asked.length);
        const each = asked[index] as Case;
        const [leaves, again, parts] = [random.below(3) === 0, random.below(2) === 0, random.below(4)];
        if (leaves) {
          counted.left++;
          await leave(engine, { ...bodyOf(each), max_tokens: 100 }, each.plan, parts);
          if (!again) continue;
          counted.retried++;
        }
        const found = await ask(each);
        counted.answered++;
        if (each.alone) answers.push({ index, found });
      }
    };
    await Promise.all(Array.from({ length: 8 }, client));
    await until(async () => (await engine.metrics()).busy_slots === 0, "no slot is busy");

    const ties: string[] = [];
    const alone = new Map<number, Token[]>();
    for (const { index, found } of answers) {
      const each = asked[index] as Case;
      const lone = alone.get(index) ?? (await ask(each, { cache_prompt: false }));
      alone.set(index, lone);
      const { tie, wrong, compared } = against(found, lone);
      counted.compared += compared;
      if (tie !== undefined) ties.push(`${each.name}: ${tie}`);
      if (wrong !== undefined) problems.push(`${each.name}: ${wrong}`);
    }
    const texts = new Set([...alone.values()].map((tokens) => tokens.map(({ id }) => id).join(" "))).size;
    return { ...counted, ties, problems, texts, computed, twin: engine.twin() as TwinReport };
  } finally {
    await engine.close();
  }
}

function computedIn(body: string): string[] {
  const { choices } = JSON.parse(body) as { choices: { tapline?: { computed: string } }[] };
  return choices.flatMap(({ tapline }) => tapline?.computed ?? []);
}

function tokensOf(body: string): Token[] {
  interface Content {
    id: number;
    logprob: number;
    top_logprobs: { logprob: number }[];
  }
  const { choices } = JSON.parse(body) as { choices: [{ logprobs: { content: Content[] } }] };
  return choices[0].logprobs.content.map(({ id, logprob, top_logprobs: top }) => {
    const [best = 0, next = Number.NEGATIVE_INFINITY] = top.map((each) => each.logprob).sort((a, b) => b - a);
    return { id, logprob, lead: best - next };
  });
}

/** An answer in the batch next to the lone one; after a tie nothing is compared. */
function against(found: Token[], alone: Token[]): { tie?: string; wrong?: string; compared: number } {
  for (const [place, expected] of alone.entries()) {
    const token = found[place];
    if (token?.id !== expected.id) {
      const told = `token ${place} is ${token?.id}, alone ${expected.id}, ${expected.lead} ahead of the next`;
      return expected.lead <= rounding ? { tie: told, compared: place } : { wrong: told, compared: place };
    }
    const off = Math.abs(token.logprob - expected.logprob);
    if (off > rounding)
      return { wrong: `token ${place}'s log-probability is off by ${off}`, compared: place };
  }
  return { compared: alone.length };
}

/** A client that disconnects after reading a number of stream parts; with none, before the answer begins. */
async function leave(engine: Engine, body: object, plan: LivePlan | undefined, parts: number): Promise<void> {
  const abort = new AbortController();
  const asking = engine.request("completion", { ...body, stream: true }, abort.signal, plan);
  try {
    if (parts === 0) abort.abort();
    const reply = await asking;
    if (reply.parts === null) throw new Error(reply.body);
    for (let read = 0; read < parts; read++) await reply.parts.next();
    abort.abort();
    await reply.parts.return?.();
  } catch (error) {
    if ((error as { code?: string }).code !== "CANCELLED") throw error;
  }
}
