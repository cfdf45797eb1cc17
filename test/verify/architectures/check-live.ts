/**
 * Checks one model's live requests and prints a ModelReport: an edited sequence and a plain one in one batch of the
 * serving engine, each against what the Lab's own context generates alone.
 *   node --import tsx test/verify/architectures/check-live.ts MODEL
 */
import { Engine, type TwinReport } from "../../../src/native/engine.js";
import { type Context, type Edit, Model } from "../../../src/native/index.js";
import { randomSource, randomVector, relativeDistance } from "./arithmetic.js";
import { settings } from "./eval-callback.js";
import { type Alone, generate } from "./generate.js";
import { type Check, type ModelReport, reportOf, tolerances } from "./report.js";

const steps = 4;

interface LiveChoice {
  /** Where the edits were computed: "graph" or "callback". */
  tapline: {
    computed: string;
    interventions?: { rows: number; mean_change_length: number; mean_row_length: number }[];
  };
  logprobs: { content: { id: number; top_logprobs: { id: number; logprob: number }[] }[] };
}

async function checkLive(path: string): Promise<ModelReport> {
  const model = await Model.open(path, { gpuLayers: 0 });
  const context = await model.createContext({ ...settings, maxSequences: 2 });
  const { nLayer, quantization } = model.info;
  const report = reportOf(model, context);
  report.checks.push({ name: "opens", ok: true, detail: "" });
  if (!context.blockOutputs.supported) return report;
  // The Lab keeps K and V of weights in F32 as they are.
  const exact = quantization === "all F32";
  const options = {
    path,
    id: "model",
    gpuLayers: 0,
    threads: 1,
    parallel: 2,
    ctxSize: 128,
    cacheRamMiB: 0,
    embeddings: false,
    // Every batch a second time without edits.
    twin: true,
    ...(exact && { cacheTypeK: "f32", cacheTypeV: "f32", flashAttention: "off" as const }),
  };
  for (const edits of ["callback", "graph"] as const) {
    let engine: Engine;
    try {
      engine = await Engine.open({ ...options, edits });
    } catch (error) {
      if (!/serve it with --parallel 1\.$/.test(String(error))) throw error;
      report.refused = (error as Error).message;
      break;
    }
    try {
      if (!engine.info.captures)
        throw new Error(`The Lab captures, the engine does not: ${engine.info.noCaptureReason}`);
      for (const layer of new Set([0, nLayer - 1])) {
        const check = await inOneBatch(model, context, engine, layer);
        if (edits === "graph") check.name += " in the graph";
        report.checks.push(check);
      }
      report.checks.push(besideEdited(engine));
      report.checks.push(await afterOverflow(model, engine));
      if (report.checks.every(({ ok }) => ok)) continue;
      // Whether the edit is the cause at all: the server's answers to two plain requests without any.
      const off = await plainOnes(model, context, engine);
      if (off > tolerances.probability) {
        report.refused =
          `llama-server's own answers to two plain requests at once are off by ${off.toExponential(1)}, without any edit, ` +
          "so that none can be compared.";
        report.checks = [{ name: "opens", ok: true, detail: "" }];
      }
      break;
    } catch (error) {
      if (!/one pass|does not generate text token by token/.test(String(error))) throw error;
      report.refused = (error as Error).message;
      break;
    } finally {
      await engine.close();
    }
  }
  await model.close();
  return report;
}

const request = (prompt: Int32Array) => ({
  prompt: [...prompt],
  max_tokens: steps,
  temperature: 0,
  logprobs: 5,
  cache_prompt: false,
});

const promptOf = (model: Model, random: () => number) =>
  Int32Array.from({ length: 9 }, () => Math.floor(random() * model.info.nVocab));

/** How far two plain answers of the engine, begun together, are off, at most. */
async function plainOnes(model: Model, context: Context, engine: Engine): Promise<number> {
  const prompt = promptOf(model, randomSource(17));
  const alone = await generate(model, context, prompt, { layer: 0 }, steps);
  const replies = await Promise.all([1, 2].map(() => engine.request("completion", request(prompt))));
  const choices = replies.map(({ body }) => (JSON.parse(body) as { choices: [LiveChoice] }).choices[0]);
  return Math.max(...choices.map((choice) => against("plain", choice, alone, [])));
}

/** An edited answer with the plain one for comparison. */
async function inOneBatch(model: Model, context: Context, engine: Engine, layer: number): Promise<Check> {
  const random = randomSource(17);
  const prompt = promptOf(model, random);
  await context.reset();
  const { layers } = await context.advance({ tokens: prompt, layers: [layer], rows: "last" });
  const length = Math.hypot(...layers[0]!.states!.data);
  const edit: Edit = { layer, vector: randomVector(model.info.nEmbd, length, random), positions: "all" };

  const alone = {
    edited: await generate(model, context, prompt, edit, steps),
    plain: await generate(model, context, prompt, { layer }, steps),
  };
  const reply = await engine.request("completion", request(prompt), undefined, { edits: [edit], pair: true });
  const body = JSON.parse(reply.body) as { choices?: LiveChoice[] };
  if (body.choices === undefined) throw new Error(reply.body);
  const [edited, plain] = body.choices as [LiveChoice, LiveChoice];
  const problems: string[] = [];
  const measured = {
    edited: against("edited", edited, alone.edited, problems),
    plain: against("plain", plain, alone.plain, problems),
    effect: relativeDistance(Float64Array.from(alone.edited.first), Float64Array.from(alone.plain.first)),
  };
  // A hook that does nothing would leave both the same, and say so.
  const [told] = edited.tapline.interventions ?? [];
  const moved = Math.max(...differences(edited, plain));
  if (!(moved >= tolerances.effect)) problems.push(`the edit moves log-probabilities by ${moved}`);
  if (!(told !== undefined && told.rows >= 1 && Math.abs(told.mean_change_length / length - 1) < 1e-3)) {
    problems.push(`the edit reports ${JSON.stringify(told)}`);
  }
  return {
    name: `live ${layer}`,
    ok: problems.length === 0,
    detail: problems.slice(0, 3).join("; "),
    note: edited.tapline.computed,
    measured,
  };
}

/** Whether the plain answers' rows were, to the bit, those of the same batches without the edits next to them. */
function besideEdited(engine: Engine): Check {
  const { plain, edited, lost, first } = engine.twin() as TwinReport;
  const ok = plain.beside > 0 && plain.different === 0 && edited.different > 0 && lost === 0;
  const detail = ok ? "" : `${JSON.stringify({ plain, edited, lost })} ${first}`;
  return { name: "same bits", ok, detail };
}

/** Whether a slot answers as before once an edit has made its memory non-finite: each kind of memory is wiped. */
async function afterOverflow(model: Model, engine: Engine): Promise<Check> {
  const [short, long] = [9, 40].map((length) =>
    Array.from({ length }, (_, index) => (7 * index + 3) % Math.min(model.info.nVocab, 97)),
  );
  const answer = async () => {
    const { body } = await engine.request("completion", {
      ...request(Int32Array.from(short!)),
      id_slot: 0,
    });
    return JSON.stringify((JSON.parse(body) as { choices: LiveChoice[] }).choices?.[0]?.logprobs ?? body);
  };
  const before = await answer();
  const { status, body } = await engine.request(
    "completion",
    { prompt: long, max_tokens: steps, id_slot: 0 },
    undefined,
    { edits: [{ layer: 0, scale: 3e38, positions: "all" }] },
  );
  const failed = status === 400 && /non-finite/.test(body);
  const after = await answer();
  const detail = !failed
    ? `an overflow answers ${status}: ${body}`
    : after === before
      ? ""
      : "another answer";
  return { name: "after an overflow", ok: detail === "", detail };
}

/** How far the first token's probabilities are off, at most; what else is wrong goes to `problems`. */
function against(what: string, choice: LiveChoice, alone: Alone, problems: string[]): number {
  const { content } = choice.logprobs;
  const distances = (content[0]?.top_logprobs ?? []).map(({ id, logprob }) =>
    Math.abs(Math.exp(logprob) - alone.first[id]!),
  );
  const largest = distances.length === 0 ? Number.NaN : Math.max(...distances);
  if (!(largest <= tolerances.probability)) problems.push(`${what}: off by ${largest}`);
  const tokens = content.map(({ id }) => id);
  const other = alone.tokens.findIndex((token, place) => token !== tokens[place]);
  // After a tie the two texts may go separate ways.
  if (other >= 0 && alone.margins[other]! > tolerances.probability) {
    problems.push(`${what}: ${tokens} where alone gives ${alone.tokens}`);
  }
  return largest;
}

/** Of the first token's log-probabilities that both choices report. */
function differences(some: LiveChoice, other: LiveChoice): number[] {
  const first = ({ logprobs }: LiveChoice) => logprobs.content[0]?.top_logprobs ?? [];
  const ids = new Map(first(other).map(({ id, logprob }) => [id, logprob]));
  // A token that is among the five of one side alone has moved.
  return first(some).map(({ id, logprob }) => Math.abs(logprob - (ids.get(id) ?? Number.NEGATIVE_INFINITY)));
}

const [path = ""] = process.argv.slice(2);
checkLive(path).then(
  (report) => process.stdout.write(`${JSON.stringify(report)}\n`),
  (error) => {
    console.error(error);
    process.exitCode = 1;
  },
);
