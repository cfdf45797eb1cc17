/** Planted faults of the embedded model and of saved items, each found by a budget; clean repeats raise no alarm. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { currentItems, featureItem, probeItem, profileItem, vectorItems } from "../../../src/check/items.js";
import { makeBudget } from "../../../src/check/make.js";
import { checkBudget } from "../../../src/check/run.js";
import { alarmText } from "../../../src/check/words.js";
import { ServingModel } from "../../../src/client/index.js";
import { Budget, type CheckResult } from "../../../src/contracts/budget.js";
import { validate } from "../../../src/contracts/validate.js";
import { encodeSafetensors } from "../../../src/formats/safetensors.js";
import { openLibrary } from "../../../src/library/library.js";
import { quantise } from "../../../src/native/index.js";
import { type Changes, changedModel } from "../../check/changed-model.js";
import { startServer, type TestServer, user } from "../../inference/support/serving.js";
import { demo } from "../../native/demo-model.js";
import { TestRandom } from "../../support/random.js";
import { temporaryFolder } from "../../support/temporary.js";

const folder = temporaryFolder("check");
const home = join(folder, "home");
const library = openLibrary(home);
const hidden = 128;
const identity = { id: "tapline-demo", fingerprint: "", nEmbd: hidden, nLayer: 8 };
const random = new TestRandom(3);
const direction = random.normals(hidden);
const prompts = [
  { text: "The capital of France is" },
  { text: "The capital of Egypt is Cairo. The capital of Japan is Tokyo." },
  { text: "I loved the film. It was" },
  { chat: "What is the capital of Spain?" },
  { chat: "What language do people speak in Brazil?" },
];
const request = { model: demo, accept: [], prompts, falseAlarms: 0.05, seed: 1 };

let server: TestServer | undefined;
let budget: Budget;

const withModel = async <T>(model: string, use: (serving: ServingModel) => Promise<T>): Promise<T> => {
  if (model === demo && server !== undefined) return use(new ServingModel(server.url));
  const own = await startServer({ model, home, threads: 1 });
  try {
    return await use(new ServingModel(own.url));
  } finally {
    await own.close();
  }
};
const options = { withModel, saved: library };

async function check(model: string, against?: string): Promise<CheckResult> {
  const current = await currentItems(library, budget);
  return checkBudget({ budget, model, against, current }, options);
}

const steered = { kind: "steer", vector: "unknown", strength: 0.4, strength_unit: "row_norm" } as const;
const putVector = (values: Float32Array) =>
  library.vectors.put("unknown", new Map([[5, values]]), identity, { note: "" });
const putProfile = (more: object[] = []) =>
  library.profiles.put("forgetful", { tapline: { interventions: [steered, ...more] as never } }, null);

test.before(async () => {
  await putVector(direction);
  await library.probes.put(
    "truth",
    4,
    {
      weight: random.normals(hidden),
      mean: new Float32Array(hidden),
      std: new Float32Array(hidden).fill(10),
      bias: 0,
    },
    identity,
    { note: "" },
  );
  await putProfile();
  const one = (shape: number[], data: Float32Array) => ({ shape, data });
  const features = 4;
  const published = temporaryFolder("check-dictionary");
  writeFileSync(
    join(published, "sae_weights.safetensors"),
    encodeSafetensors({
      W_enc: one([hidden, features], random.normals(hidden * features)),
      W_dec: one([features, hidden], random.normals(hidden * features)),
      b_enc: one([features], new Float32Array(features)),
      b_dec: one([hidden], new Float32Array(hidden)),
    }),
  );
  const metadata = { hook_name: "blocks.6.hook_resid_post" };
  writeFileSync(join(published, "cfg.json"), JSON.stringify({ architecture: "standard", metadata }));
  await library.dictionaries.add("four", published);
  server = await startServer({ home, threads: 1 });
  const items = {
    probes: [await probeItem(library, "truth")],
    vectors: await vectorItems(library, "unknown"),
    features: [await featureItem(library, "four", 0), await featureItem(library, "four", 1)],
    profiles: [await profileItem(library, "forgetful")],
  };
  const made = await makeBudget({ ...request, items }, options);
  budget = validate(Budget, JSON.parse(JSON.stringify(made))) as Budget;
});
test.after(() => server?.close());

/** Multiplies each weight by 1 plus noise. */
const noisy = (share: number) => (values: Float32Array) => {
  const noise = new TestRandom(7);
  for (const [index, value] of values.entries()) values[index] = value * (1 + share * noise.normal());
};
/** Adds a product of two narrow matrices, as merging an adapter does. */
const merged =
  (size: number) =>
  (values: Float32Array, [width]: readonly number[]) => {
    const inner = width as number;
    const [down, up] = [new TestRandom(1).normals(inner), new TestRandom(2).normals(values.length / inner)];
    for (const index of values.keys()) {
      values[index] =
        (values[index] as number) +
        size * (down[index % inner] as number) * (up[Math.floor(index / inner)] as number);
    }
  };

interface Fault {
  name: string;
  /** Makes the faulty model; or changes a saved item and returns what undoes it. */
  model?: (path: string) => Promise<string>;
  plant?: () => Promise<() => Promise<unknown>>;
  /** The block that the first alarm must name, where the difference starts; null for none. */
  block?: number | null;
  what?: "tokens";
  profile?: string;
  reading?: string;
}
const changed = (changes: Changes) => (path: string) => changedModel(path, changes);
const float = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
};

const faults: Fault[] = [
  {
    name: "1 % noise in one matrix",
    model: changed({ weights: { "blk.3.ffn_up.weight": noisy(0.01) } }),
    block: 3,
  },
  {
    name: "a changed chat template",
    model: changed({ texts: { "message.role + '\\n' }}": "message.role + ': ' }}" } }),
    what: "tokens",
  },
  {
    name: "another quantization",
    model: async (path) => {
      await quantise({ from: demo, to: path, form: "Q8_0", threads: 1 });
      return path;
    },
    block: 0,
  },
  {
    name: "a merged adapter",
    model: changed({
      weights: { "blk.5.attn_q.weight": merged(0.003), "blk.5.attn_v.weight": merged(0.003) },
    }),
    block: 5,
  },
  {
    name: "an edit left in a profile",
    plant: async () => {
      await putProfile([{ kind: "ablate", layer: 6, strength: 0.02 }]);
      return () => putProfile();
    },
    ...{ profile: "forgetful", block: 6 },
  },
  {
    name: "a changed vector",
    plant: async () => {
      const turned = direction.map(
        (value, index) => value + 0.03 * (direction[(index + 1) % hidden] as number),
      );
      await putVector(turned);
      return () => putVector(direction);
    },
    ...{ block: null, reading: "unknown" },
  },
  {
    name: "a tokenizer flag",
    model: changed({ values: { "tokenizer.ggml.add_bos_token": Buffer.of(0) } }),
    what: "tokens",
  },
  { name: "a rope setting", model: changed({ values: { "qwen3.rope.freq_base": float(50_000) } }), block: 0 },
  {
    name: "the output norm",
    model: changed({ weights: { "output_norm.weight": noisy(0.03) } }),
    ...{ block: null, reading: "" },
  },
  {
    name: "one row of the embeddings",
    model: (path) => {
      const token = budget.prompts[1]?.tokens[4] as number;
      const change = (values: Float32Array) => {
        const row = values.subarray(token * hidden, (token + 1) * hidden);
        for (const [index, value] of row.entries()) row[index] = 1.02 * value;
      };
      return changedModel(path, { weights: { "token_embd.weight": change } });
    },
    // The output has the same weights, so the token before predicts it differently.
    ...{ block: 0, reading: "" },
  },
];

let found = 0;
for (const [
  index,
  { name, model, plant, what = "readings", profile = null, block, reading },
] of faults.entries()) {
  test(`finds ${name}`, async () => {
    const undo = await plant?.();
    try {
      const result = await check(model === undefined ? demo : await model(join(folder, `${index}.gguf`)));
      assert.not(result.passed);
      found++;
      const [first] = result.alarms;
      assert.ok(first);
      const text = alarmText(budget, first);
      assert.is(first.what, what, text);
      assert.is(first.profile, profile, text);
      if (block !== undefined) assert.is(first.starts?.block ?? null, block, text);
      if (block !== undefined && block !== null) assert.ok((first.block?.layer ?? 8) >= block, text);
      if (reading !== undefined) assert.is(first.reading?.name, reading, text);
    } finally {
      await undo?.();
    }
  });
}

test("finds at least nine of ten", () => {
  assert.is(faults.length, 10);
  assert.ok(found >= 9, `${found}`);
});

test("twenty clean repeats beside chats raise no alarm", async () => {
  const chats = new AbortController();
  const talking = Promise.all(
    [0, 1].map(async (chat) => {
      const serving = new ServingModel((server as TestServer).url);
      for (let round = 0; !chats.signal.aborted; round++) {
        await serving.answers(user(`Tell me about number ${chat} ${round}.`), {
          request: { max_tokens: 24 },
        });
      }
      return chat;
    }),
  );
  try {
    for (let repeat = 0; repeat < 20; repeat++) {
      const { passed, changed: items, alarms } = await check(demo);
      assert.ok(passed, JSON.stringify(alarms[0]));
      assert.equal(items, []);
    }
  } finally {
    chats.abort();
    await talking;
  }
});

test("two files are compared with each other instead of the reference", async () => {
  const path = await changedModel(join(folder, "against.gguf"), {
    weights: { "blk.2.attn_output.weight": noisy(0.02) },
  });
  const same = await check(path, path);
  assert.ok(same.passed, JSON.stringify(same.alarms[0]));
  const { alarms, against } = await check(demo, path);
  assert.is(against.id, "against");
  assert.is(alarms[0]?.block?.layer, 2);
});

test("an accepted form passes, and what differs further does not", async () => {
  const form = join(folder, "accepted.gguf");
  await quantise({ from: demo, to: form, form: "Q8_0", threads: 1 });
  const { probes, vectors, features, profiles } = budget;
  const items = { probes, vectors, features, profiles };
  const made = await makeBudget({ ...request, accept: [form], items }, options);
  const current = { items, changed: [] };
  const passes = await checkBudget({ budget: made, model: form, current }, options);
  assert.ok(passes.passed, JSON.stringify(passes.alarms[0]));
  assert.equal(
    made.accepted.map(({ quantization }) => quantization),
    ["Q8_0"],
  );
  const coarse = join(folder, "coarse.gguf");
  await quantise({ from: demo, to: coarse, form: "Q4_K_M", threads: 1 });
  assert.not((await checkBudget({ budget: made, model: coarse, current }, options)).passed);
});

test("a model of another shape is refused with both shapes", async () => {
  const other = { ...budget, model: { ...budget.model, n_layer: 9 } };
  const current = await currentItems(library, budget);
  const error = await checkBudget({ budget: other, model: demo, current }, options).catch((reason) => reason);
  assert.is(
    error.message,
    "tapline-demo has 8 blocks of width 128, and tapline-demo has 9 blocks of width 128: they cannot be compared.",
  );
});

test.run();
