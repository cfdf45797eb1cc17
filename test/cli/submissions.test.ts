/** What each flag of an experiment becomes in the submission that a Lab gets. No model is loaded. */
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { command } from "./in-process.js";
import { standIn } from "./stand-in.js";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "tapline-submissions-")));
const lab = await standIn();
test.before.each(() => {
  lab.begin();
  lab.answers = { "POST /lab/v1/jobs": { id: "0123456789abcdef0123456789abcdef" } };
});
test.after(async () => {
  await lab.close();
  rmSync(folder, { recursive: true, force: true });
});

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** The submission of a command line, split at blanks; arguments with blanks are appended. */
async function submitted(words: string, ...more: string[]): Promise<unknown> {
  lab.begin();
  lab.answers = { "POST /lab/v1/jobs": { id: "0123456789abcdef0123456789abcdef" } };
  const { code, stdout, stderr } = await command([
    ...words.split(" "),
    ...more,
    "--detach",
    "--lab",
    lab.url,
  ]);
  assert.equal([code, stdout, stderr], [0, "0123456789abcdef0123456789abcdef\n", ""], words);
  const [[line, body] = [], ...others] = lab.asked();
  assert.equal([line, others], ["POST /lab/v1/jobs", []]);
  return body;
}

/** The sentence by which a command refuses to hand anything in, and that it ends with 2. */
async function refused(words: string, ...more: string[]): Promise<string> {
  lab.begin();
  const { code, stdout, stderr } = await command([
    ...words.split(" "),
    ...more,
    "--detach",
    "--lab",
    lab.url,
  ]);
  assert.equal([code, stdout, lab.asked()], [2, "", []], `${words}: ${stderr}`);
  return stderr.replace(/^tapline: |\n(\(add --help.*\n)?$/g, "");
}

const eight = Array.from({ length: 8 }, (_, index) => ({
  text: `text ${index}`,
  label: index % 2,
  split: index < 4 ? "train" : "test",
}));
const examples = file("examples.json", JSON.stringify(eight));
const unlabelled = eight.map(({ text, split }) => ({ text, split }));
const texts = file("texts.txt", "one\ntwo\n");
const others = file("others.txt", "three\nfour\n");

test("inspect: every flag is its field, and omitted flags are not sent", async () => {
  const every = await submitted(
    "inspect --layers 0,3 --points attn_out,mid --lens demo --show rank --attention 4-5 --heads 0,2 --routing --decompose " +
      "--max-input-tokens 9 --seed 3 --revision v1 --model owner/name --target",
    " Tokyo",
    "The capital of",
  );
  assert.equal(every, {
    operation: "inspect",
    model: "owner/name",
    revision: "v1",
    layers: [0, 3],
    max_input_tokens: 9,
    seed: 3,
    prompt: "The capital of",
    target_token: " Tokyo",
    points: ["attn_out", "mid"],
    lens: "demo",
    attention: { layers: [4, 5], heads: [0, 2] },
    routing: true,
    decompose: true,
    follow_answer: false,
  });
  // Without a target the answer is followed, and the model's own blocks are counted.
  const bare = { operation: "inspect", model: "demo", prompt: "x", follow_answer: true };
  assert.equal(await submitted("inspect x"), { ...bare, layers: [0, 1, 2, 3, 4, 5, 6, 7] });
  assert.equal(await submitted("inspect x --layers 7 --show entropy"), {
    ...bare,
    layers: [7],
    measures: true,
  });
  assert.equal(await submitted("inspect x --layers 7 --attention 1"), {
    ...{ ...bare, layers: [7], attention: { layers: [1] } },
  });
  assert.is(await refused("inspect x --heads 1"), "--heads requires --attention.");
  assert.match(
    await refused("inspect x --points mid,out"),
    "“out” is not one of block_in, attn_out, mid, ffn_in, ffn_out.",
  );
  assert.match(await refused("inspect x --points mid,mid"), "A hook point occurs twice.");
  assert.match(
    await refused("inspect x --show logit"),
    "Allowed choices are token, rank, entropy, divergence.",
  );
});

test("unknown block counts are left to the Lab with a note; --quiet omits it", async () => {
  const model = "/models/of/another/machine.gguf";
  const words = ["inspect", "x", "--model", model, "--detach", "--lab", lab.url];
  assert.is(
    (await command(words)).stderr,
    `tapline: Cannot count the blocks of "${model}" from here; inspecting layer 0. Use --layers to choose others.\n`,
  );
  assert.is((await command([...words, "--quiet"])).stderr, "");
  const body = { operation: "inspect", model, prompt: "x", follow_answer: true };
  assert.equal(
    lab.asked().map(([, sent]) => sent),
    [body, body],
  );
});

test("compare: every flag is its field", async () => {
  const base = { operation: "compare", model: "demo", prompt: "a b" };
  const of = (words: string) => submitted(`compare ${words}`, "a b");
  assert.equal(
    await of(
      "--layers 5 --intervention steer --strengths 0,-1.5,2e1 --positive good --negative bad --strength-unit vector " +
        "--positions 0:3,-2,-1 --point mid --controls --max-tokens 7 --target-token x --seed 0",
    ),
    {
      ...{ ...base, layers: [5], intervention: "steer", strengths: [0, -1.5, 20], positive: "good" },
      ...{ negative: "bad", strength_unit: "vector", point: "mid", controls: true, max_tokens: 7 },
      positions: [
        [0, 3],
        [-2, -2],
        [-1, -1],
      ],
      ...{ target_token: "x", seed: 0 },
    },
  );
  for (const named of ["last", "all", "prompt", "generated"]) {
    assert.equal(await of(`--positions ${named}`), { ...base, positions: named });
  }
  assert.equal(await of("--intervention patch --donor-prompt c"), {
    ...{ ...base, intervention: "patch", donor_prompt: "c" },
  });
  assert.equal(await of("--intervention clamp --feature my.own:12 --min -1 --max 2.5"), {
    ...{ ...base, intervention: "clamp", feature: ["my.own", 12], min: -1, max: 2.5 },
  });
  assert.equal(await of(`--intervention project_out --positives ${texts} --negatives ${others}`), {
    ...{ ...base, intervention: "project_out", positives: ["one", "two"], negatives: ["three", "four"] },
  });
  assert.equal(await of("--intervention ablate --point head_out --heads 0,3"), {
    ...{ ...base, intervention: "ablate", point: "head_out", heads: [0, 3] },
  });
  assert.equal(await of("--intervention swap --swap Rome --with Paris --lens demo --layers 4-6"), {
    ...{ ...base, intervention: "swap", swap: ["Rome", "Paris"], lens: "demo", layers: [4, 5, 6] },
  });
  // The file of prompts needs no prompt next to it.
  assert.equal(await submitted("compare --prompts", texts), {
    ...{ operation: "compare", model: "demo", prompts: ["one", "two"] },
  });
  assert.equal(await submitted("compare own --prompts", texts), {
    ...{ operation: "compare", model: "demo", prompt: "own", prompts: ["one", "two"] },
  });
});

test("compare refuses interventions in unknown notation", async () => {
  for (const [words, sentence] of [
    ["--swap Rome", "--swap and --with must be given together."],
    ["--with Rome", "--swap and --with must be given together."],
    ["--layers 1,2,4", "--layers: compare changes one block at a time, got 1, 2, 4. Run it once per block."],
    ["--feature mine", "Write a dictionary and a feature, such as mine:12."],
    ["--feature :12", "Write a dictionary and a feature, such as mine:12."],
    ["--positions 1:2:3", "Write last, all, prompt, generated, or ranges such as 0:3,-2:-1."],
    ["--positions 1,", "Write last, all, prompt, generated, or ranges such as 0:3,-2:-1."],
    ["--strengths 1,,2", "Write numbers such as 0,0.5,1."],
    ["--strengths 1,x", "Write numbers such as 0,0.5,1."],
    ["--min x", "Write a number."],
    ["--max Infinity", "Write a number."],
    ["--max-tokens 0", "It must be a whole number between 1 and 128."],
    ["--max-tokens 129", "It must be a whole number between 1 and 128."],
    ["--intervention turn", "Allowed choices are scale, ablate, patch, steer, project_out, clamp, swap."],
    ["--max-input-tokens 1025", "It must be a whole number between 1 and 1024."],
    ["--max-input-tokens 0", "It must be a whole number between 1 and 1024."],
    ["--seed 2147483648", "It must be a whole number between 0 and 2147483647."],
  ] as const) {
    assert.match(await refused(`compare x ${words}`), sentence);
  }
  assert.match(await refused("compare x --min", " "), "Write a number.");
});

test("probe and sae: examples from a file, and their settings", async () => {
  const probe = { operation: "probe", model: "demo", examples: eight };
  assert.equal(await submitted("probe --examples", examples), probe);
  assert.equal(await submitted("probe --layers 0-7 --point ffn_out --rows mean --examples", examples), {
    ...{ ...probe, layers: [0, 1, 2, 3, 4, 5, 6, 7], point: "ffn_out", rows: "mean" },
  });
  const bare = file("bare.jsonl", unlabelled.map((one) => JSON.stringify(one)).join("\n"));
  assert.equal(
    await submitted(
      "sae --layers 5 --features 16 --steps 20 --architecture topk --rows all --point mid --k 4 --batch 5 " +
        "--learning-rate 0.5 --warmup 0.25 --decay 0.125 --seed 7 --examples",
      bare,
    ),
    {
      ...{
        operation: "sae",
        model: "demo",
        layers: [5],
        seed: 7,
        architecture: "topk",
        rows: "all",
        point: "mid",
      },
      ...{ k: 4, batch: 5, learning_rate: 0.5, warmup: 0.25, decay: 0.125, features: 16, steps: 20 },
      examples: unlabelled,
    },
  );
  assert.equal(await submitted("sae --sparsity 3 --architecture jumprelu --examples", bare), {
    ...{ operation: "sae", model: "demo", architecture: "jumprelu", sparsity: 3, examples: unlabelled },
  });
  assert.equal(await submitted("sae --point ffn_in --target ffn_out --skip --examples", bare), {
    ...{ operation: "sae", model: "demo", point: "ffn_in", target: "ffn_out", skip: true },
    examples: unlabelled,
  });
  assert.match(await refused("sae --target mid --examples", bare), "Allowed choices are ffn_out.");
  assert.is(
    await refused("sae --threads 2 --examples", bare),
    "--threads requires --from: otherwise the Lab chooses.",
  );
  for (const [words, sentence] of [
    ["--learning-rate 1.5", "It must be a number between 0 and 1."],
    ["--warmup -1", "It must be a number between 0 and 1."],
    ["--sparsity 1001", "It must be a number between 0 and 1000."],
    ["--features 7", "It must be a whole number between 8 and 65536."],
    ["--batch 65537", "It must be a whole number between 1 and 65536."],
    ["--k 0", "It must be a whole number between 1 and 65536."],
  ] as const) {
    assert.match(await refused(`sae ${words}`), sentence);
  }
  assert.match(await refused("sae --decay", " "), "It must be a number between 0 and 1.");
});

test("sae --from trains locally and refuses Lab and model flags by name", async () => {
  const said = async (...words: string[]) => {
    const { code, stderr } = await command(["sae", "--from", folder, "--out", folder, ...words]);
    assert.is(code, 2);
    return stderr;
  };
  for (const [flag, ...value] of [
    ["--examples", examples],
    ["--model", "demo"],
    ["--revision", "main"],
    ["--config", examples],
    ["--lab", "1"],
    ["--detach"],
    ["--max-input-tokens", "4"],
  ] as [string, ...string[]][]) {
    assert.is(
      await said(flag, ...value),
      `tapline: ${flag} cannot be combined with --from, which needs neither a model nor a Lab.\n`,
    );
  }
  assert.match(await said("--no-out"), "--from requires a folder: use --out.");
  assert.match(
    await said("--k", "9", "--features", "8", "--architecture", "topk"),
    "k: must be at most the number of features (8), got 9.",
  );
  assert.match(await said("--k", "9"), "k: applies to topk and batchtopk, not to relu.");
  assert.match(await said("--skip"), "skip: applies to transcoders; it requires target.");
  assert.match(
    await said("--point", "mid", "--target", "ffn_out"),
    "target: ffn_out requires the point ffn_in, got mid.",
  );
});

test("features: prompt or texts, pages and published labels", async () => {
  const base = { operation: "features", model: "demo", dictionary: "mine" };
  assert.equal(await submitted("features --dictionary mine x"), { ...base, prompt: "x" });
  const export_ = { ...base, texts: ["one", "two"], top: 3, pages: [3, 17] };
  const words = "features --dictionary mine --top 3 --pages 3,17 --texts";
  assert.equal(await submitted(words, texts), export_);
  const labels = async (place: string) => {
    const body = (await submitted(words, texts, "--labels", place)) as { labels: string };
    return body.labels;
  };
  assert.is(await labels("https://example.org/a"), "https://example.org/a");
  assert.is(await labels("http://example.org/a"), "http://example.org/a");
  assert.is(await labels("names.json"), join(process.cwd(), "names.json"));
  assert.is(
    await refused("features --dictionary mine x --layers 1"),
    "--layers: not available, because the dictionary determines the block.",
  );
  assert.match(
    await refused("features --dictionary mine x --pages 3,a"),
    "Write feature indices such as 3,17.",
  );
  assert.match(
    await refused("features --dictionary mine x --pages 67108864"),
    "Write feature indices such as 3,17.",
  );
  assert.equal(
    ((await submitted("features x --dictionary mine --pages 67108863")) as { pages: unknown }).pages,
    [67_108_863],
  );
  assert.match(
    await refused("features --dictionary mine x --top 65"),
    "It must be a whole number between 1 and 64.",
  );
});

test("patch: the sweep's fields, under the names of patch", async () => {
  const base = { operation: "patch_sweep", model: "demo", clean: "a", corrupted: "b" };
  assert.equal(await submitted("patch a --corrupted b"), base);
  assert.equal(
    await submitted(
      "patch a --corrupted b --target x --foil y --points attn_out,head_out --heads 1 --positions 3,-1 --direction noise " +
        "--no-controls --layers 0-9",
    ),
    {
      ...{ ...base, layers: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], target_token: "x", foil_token: "y", heads: [1] },
      ...{ points: ["attn_out", "head_out"], positions: [3, -1], direction: "noise", controls: false },
    },
  );
  assert.equal(await submitted("patch --positions aligned", "[[a]]", "--corrupted", "[[b]]"), {
    ...{ ...base, clean: "[[a]]", corrupted: "[[b]]", positions: "aligned" },
  });
  const pairs = file("pairs.csv", "clean,corrupted,target_token\na,b,\nc,d, x\n");
  assert.equal(await submitted("patch --pairs", pairs), {
    ...{ operation: "patch_sweep", model: "demo" },
    pairs: [
      { clean: "a", corrupted: "b" },
      { clean: "c", corrupted: "d", target_token: " x" },
    ],
  });
  assert.match(await refused("patch a --corrupted b --positions 1,b"), "Write token indices such as 3,4,-1.");
  assert.match(
    await refused("patch a --corrupted b --points attention"),
    "“attention” is not one of block_in, head_out,",
  );
});

test("extract takes a file by absolute path, or examples; folders are not fetched", async () => {
  const base = { operation: "extract", model: "demo" };
  const data = { ...base, data: join(process.cwd(), "texts.jsonl") };
  assert.equal(await submitted("extract --data texts.jsonl"), data);
  assert.equal(
    await submitted(
      "extract --data texts.jsonl --layers 5,12 --rows last --point mid --dtype bf16 --too-long cut --shard 2/8 " +
        "--shard-tokens 256 --out rows",
    ),
    {
      ...{
        ...data,
        layers: [5, 12],
        rows: "last",
        point: "mid",
        dtype: "bf16",
        too_long: "cut",
        shard: [2, 8],
      },
      ...{ shard_tokens: 256, out: join(process.cwd(), "rows") },
    },
  );
  // A plan writes nothing.
  assert.equal(await submitted("extract --data texts.jsonl --plan --out rows"), { ...data, plan: true });
  assert.equal(await submitted("extract --examples", examples), { ...base, examples: eight });
  assert.is(
    await refused("extract --data a.txt --examples", examples),
    "--data and --examples cannot be combined.",
  );
  assert.match(
    await refused("extract --data a.txt --shard 8"),
    "Write the part and the number of parts, such as 0/8.",
  );
  assert.match(
    await refused("extract --data a.txt --shard 8/8"),
    "shard: must be [i, n] with i from 0 to n - 1, got [8, 8].",
  );
  assert.match(
    await refused("extract --data a.txt --shard-tokens 255"),
    "a whole number between 256 and 1048576.",
  );
});

test("graph: tokens, numbers and switches", async () => {
  assert.equal(await submitted("graph p"), { operation: "graph", model: "demo", prompt: "p" });
  assert.equal(
    await submitted(
      "graph p --target=a --foil=b --position=-2 --nodes 9 --first-token --node-threshold 0.5 --edge-threshold 1 --measured 0 --seed 3",
    ),
    {
      ...{ operation: "graph", model: "demo", prompt: "p", target_token: "a", foil_token: "b", position: -2 },
      ...{ nodes: 9, first_token: true, node_threshold: 0.5, edge_threshold: 1, measured: 0, seed: 3 },
    },
  );
  assert.match(await refused("graph p --nodes 7501"), "It must be a whole number between 1 and 7500.");
});

test("drift and explain: a second model that is a local file gets its full path", async () => {
  const here = file("other.gguf", "");
  const drift = { operation: "drift", model: "demo", examples: eight };
  const more = { dictionary: "d", probe: "p", vector: "v", other_revision: "main" };
  assert.equal(
    await submitted(
      "drift --dictionary d --probe p --vector v --other-revision main --layers 1 --other owner/name --examples",
      examples,
    ),
    { ...drift, ...more, layers: [1], other: "owner/name" },
  );
  const near = relative(process.cwd(), here);
  assert.equal(await submitted("drift --other demo --examples", examples), { ...drift, other: "demo" });
  assert.equal(await submitted("drift --examples", examples, "--other", near), { ...drift, other: here });

  const template = file("template.txt", "What is X?\n");
  const explain = {
    operation: "explain",
    model: "demo",
    prompt: "p",
    layer: 3,
    marker: "X",
    template: "What is X?\n",
  };
  const words = `explain p --layer 3 --marker X --template ${template}`;
  assert.equal(await submitted(words), explain);
  assert.equal(
    await submitted(
      `${words} --positions=-2,-1 --verbaliser ${here} --verbaliser-revision r --length 1.5 --samples 2 --temperature 0.5 ` +
        "--description-tokens 9 --no-controls",
    ),
    {
      ...{
        ...explain,
        positions: [-2, -1],
        verbaliser: here,
        verbaliser_revision: "r",
        length: 1.5,
        samples: 2,
      },
      ...{ temperature: 0.5, description_tokens: 9, controls: false },
    },
  );
  assert.equal(await submitted(`${words} --samples 1`), { ...explain, samples: 1 });
  for (const samples of [0, 9]) {
    assert.match(
      await refused(`${words} --samples ${samples}`),
      "It must be a whole number between 1 and 8.",
    );
  }
  assert.match(
    await refused(`${words} --description-tokens 513`),
    "It must be a whole number between 1 and 512.",
  );
  assert.match(await refused(`${words} --layer 256`), "It must be a whole number between 0 and 255.");
});

test("a configuration is a submission or a job; flags override it", async () => {
  const config = { operation: "compare", model: "owner/name", prompt: "c", seed: 5, layers: [2] };
  const plain = file("compare.json", JSON.stringify(config));
  assert.equal(await submitted("compare --config", plain), config);
  assert.equal(await submitted("compare x --seed 6 --model demo --config", plain), {
    ...{ ...config, prompt: "x", seed: 6, model: "demo" },
  });
  const job = file("job.json", JSON.stringify({ id: "0", config }));
  assert.equal(await submitted("compare --config", job), config);
  const { operation: _, model: _model, ...rest } = config;
  const bare = file("rest.json", JSON.stringify({ ...rest, config: {} }));
  assert.match(await refused("compare --config", bare), /unknown field "config"/);
  const without = file("without.json", JSON.stringify(rest));
  assert.equal(await submitted("compare --config", without), { ...config, model: "demo" });
  // A target in the configuration counts like the flag.
  const target = file("inspect.json", JSON.stringify({ prompt: "p", layers: [1], target_token: " x" }));
  assert.equal(await submitted("inspect --config", target), {
    ...{
      operation: "inspect",
      model: "demo",
      prompt: "p",
      layers: [1],
      target_token: " x",
      follow_answer: false,
    },
  });
  assert.is(await refused("probe --config", plain), `${plain} is a submission of compare, not of probe.`);
  // A model that is a file here is the Lab's to open.
  const model = file("m.gguf", "");
  assert.equal(await submitted("compare x --model", model), { operation: "compare", model, prompt: "x" });
});

test("--detach prints the whole job as JSON, and needs a running Lab", async () => {
  const job = { id: "0123456789abcdef0123456789abcdef", status: "queued" };
  lab.answers = { "POST /lab/v1/jobs": job };
  const told = await command(["compare", "x", "--detach", "--json", "--lab", lab.url]);
  assert.equal(JSON.parse(told.stdout), job);
  const { code, stderr } = await command(["compare", "x", "--detach", "--lab", "new"]);
  assert.equal(
    [code, stderr],
    [2, "tapline: --detach and --lab new cannot be combined: a temporary Lab ends with the command.\n"],
  );
});

test.run();
