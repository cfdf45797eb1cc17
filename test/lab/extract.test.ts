import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import promises from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  checkSubmission,
  type ExtractConfig,
  type ExtractResult,
  type Job,
  UserError,
} from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { type Context, Model } from "../../src/native/index.js";
import { extract } from "../../src/operations/extract/run.js";
import type { Findings } from "../../src/operations/run.js";
import { demo } from "../native/demo-model.js";
import { pythonWith } from "../support/python.js";
import { withFiles } from "../support/with-files.js";
import { type Harness, openHarness, setMeddle } from "./harness.js";

const hidden = 128;
const layers = [2, 7];
const texts = [
  "The capital of France is",
  "I did not like the film",
  "x",
  "Anna gave the book to Tom. Tom gave",
  "The trip was charming.",
];

let lab: Harness;
let folder: string;
let model: Model;
let context: Context;
test.before(async () => {
  lab = await openHarness();
  folder = mkdtempSync(join(tmpdir(), "tapline-extract-"));
  model = await Model.open(demo);
  context = await model.createContext({ threads: 1 });
});
test.after(async () => {
  await model.close();
  await lab.close();
  rmSync(folder, { recursive: true, force: true });
});

async function ended(body: object): Promise<Job> {
  return lab.finished((await lab.submit({ operation: "extract", model: "demo", layers, ...body })).id);
}

/** The operation in this process: where its artifacts went comes with what it found. */
async function run(body: object): Promise<Findings<ExtractResult> & { place: string; names: string[] }> {
  const config = checkSubmission({ operation: "extract", model: "demo", layers, ...body }) as ExtractConfig;
  const place = mkdtempSync(join(folder, "artifacts-"));
  const artifacts = new Artifacts(place);
  const openOther = () => Promise.reject(new Error("There is one model here."));
  const clock = new StageClock();
  const found = await extract({ config, model, artifacts, progress: () => {}, clock, openOther });
  return { ...found, place, names: artifacts.names };
}

/** A file of more texts than one shard of 256 tokens takes; returns its path and the texts. */
function manyTexts(name: string, count = 120): { path: string; texts: string[] } {
  const own = Array.from({ length: count }, (_, i) => `${texts[i % texts.length]} ${i}`);
  const path = join(folder, name);
  writeFileSync(path, own.map((text) => `${JSON.stringify({ text, id: 1 })}\r\n`).join("\n"));
  return { path, texts: own };
}

/** Block outputs of one text in a separate pass. */
async function alone(text: string, layer: number): Promise<{ tokens: Int32Array; rows: Float32Array }> {
  const tokens = await model.tokenize(text);
  await context.reset();
  const { layers: found } = await context.advance({ tokens, layers: [layer] });
  return { tokens, rows: found[0]?.states?.data as Float32Array };
}

/** Within what K and V in F16 and another batch make of a row; a row of another token is far away. */
function near(a: ArrayLike<number>, b: ArrayLike<number>, what: string, bound = 3e-3): void {
  assert.is(a.length, b.length, what);
  let [difference, size] = [0, 0];
  for (let i = 0; i < a.length; i++) {
    difference += ((a[i] as number) - (b[i] as number)) ** 2;
    size += (b[i] as number) ** 2;
  }
  assert.ok(Math.sqrt(difference / size) < bound, `${what}: ${Math.sqrt(difference / size)}`);
}

test("every token's row in packed texts equals that of the text alone", async () => {
  const { path, texts: own } = manyTexts("all.jsonl");
  const out = join(folder, "all");
  const result = await run({ data: path, out, shard_tokens: 256 });
  const index = JSON.parse(readFileSync(join(out, "index.json"), "utf8"));
  assert.ok(index.complete && result.files > 2);
  assert.equal([result.folder, result.index, result.names], [out, "index.json", []]);
  let text = 0;
  for (const shard of index.shards) {
    const file = readFileSync(join(out, shard.file));
    assert.is(file.length, shard.bytes);
    assert.ok(shard.tokens <= 256);
    const ints = (name: string, count: number) => new Int32Array(file.buffer.slice(file.byteOffset + shard.offsets[name], file.byteOffset + shard.offsets[name] + 4 * count)); // biome-ignore format: one line
    const starts = ints("text_starts", shard.texts + 1);
    const ids = ints("token_ids", shard.tokens);
    assert.is(starts.at(-1), shard.tokens);
    for (const [i, number] of ints("text_indices", shard.texts).entries()) {
      assert.is(number, text++);
      const [from, to] = [starts[i] as number, starts[i + 1] as number];
      for (const layer of layers) {
        const { tokens, rows } = await alone(own[number] as string, layer);
        assert.equal(ids.slice(from, to), tokens);
        const at = shard.offsets[`layer_${layer}`];
        const all = new Float32Array(
          file.buffer.slice(file.byteOffset + at, file.byteOffset + at + 4 * shard.rows * hidden),
        );
        near(all.subarray(from * hidden, to * hidden), rows, `text ${number}, layer ${layer}`);
      }
    }
  }
  assert.is(text, own.length);
  assert.equal([result.texts, result.row_count, result.cut_texts], [own.length, result.tokens, 0]);
});

test("last rows, and means without the BOS token, by layer and as artifacts", async () => {
  const examples = texts.map((text) => ({ text }));
  for (const rows of ["last", "mean"] as const) {
    const result = await run({ examples, rows });
    assert.equal([...result.names].sort(), ["index.json", "index.parquet", "shard-00000.safetensors"]);
    assert.equal([result.folder, result.row_count], [null, texts.length]);
    const file = readFileSync(join(result.place, "shard-00000.safetensors"));
    for (const layer of layers) {
      const index = JSON.parse(readFileSync(join(result.place, "index.json"), "utf8"));
      const at = file.byteOffset + index.shards[0].offsets[`layer_${layer}`];
      const found = new Float32Array(file.buffer.slice(at, at + 4 * texts.length * hidden));
      for (const [i, text] of texts.entries()) {
        const { tokens, rows: all } = await alone(text, layer);
        const wanted = Array.from({ length: hidden }, (_, j) => {
          if (rows === "last") return all[(tokens.length - 1) * hidden + j] as number;
          let sum = 0;
          for (let t = 1; t < tokens.length; t++) sum += all[t * hidden + j] as number;
          return sum / (tokens.length - 1);
        });
        near(found.subarray(i * hidden, (i + 1) * hidden), wanted, `${rows} of ${text}`);
      }
    }
  }
});

test("numpy and torch read it in two lines; f16 and bf16 are the rows rounded", async () => {
  const python = pythonWith("numpy");
  if (python === undefined) return;
  const examples = texts.map((text) => ({ text }));
  const outs = { f32: join(folder, "f32"), f16: join(folder, "f16"), bf16: join(folder, "bf16") };
  for (const [dtype, out] of Object.entries(outs)) await run({ examples, out, dtype });
  const program = `
import json, sys, numpy as np
def read(folder, dtype):
    index = json.load(open(folder + "/index.json")); shard = index["shards"][0]
    return np.memmap(folder + "/" + shard["file"], dtype, "r", shard["offsets"]["layer_7"], (shard["rows"], index["source"]["hidden"]))
exact = np.array(read(sys.argv[1], "<f4"))
assert exact.shape[1] == ${hidden} and np.isfinite(exact).all()
assert (read(sys.argv[2], "<f2").view("u2") == exact.astype("<f2").view("u2")).all()
bits = exact.view("u4").astype("u8")
rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("u2")
assert (np.array(read(sys.argv[3], "<u2")) == rounded).all()
try:
    import torch
    index = json.load(open(sys.argv[3] + "/index.json")); shard = index["shards"][0]
    rows = torch.from_file(sys.argv[3] + "/" + shard["file"], size=shard["bytes"] // 2, dtype=torch.bfloat16)
    rows = rows[shard["offsets"]["layer_7"] // 2:][: exact.size].view(exact.shape)
    assert (rows.float().numpy() == (rounded.astype("u4") << 16).view("f4")).all()
except ModuleNotFoundError:
    pass
`;
  const { status, stderr } = spawnSync(python, ["-c", program, outs.f32, outs.f16, outs.bf16], {
    encoding: "utf8",
  });
  assert.is(status, 0, stderr);
});

test("killed between two files, an extraction resumes and gives the same files", async () => {
  const { path } = manyTexts("killed.jsonl");
  const body = { data: path, shard_tokens: 256, dtype: "f16" };
  const whole = join(folder, "whole");
  const out = join(folder, "killed");
  const { files } = await run({ ...body, out: whole });
  setMeddle("SIGKILL:file 2 of", lab.home);
  const killed = await ended({ ...body, out });
  setMeddle(undefined, lab.home);
  assert.is(killed.status, "failed");
  const after = readdirSync(out).sort();
  assert.ok(after.includes("shard-00000.safetensors"), after.join());
  assert.not.ok(after.includes("shard-00001.safetensors"), "no half file under a name");
  assert.is(JSON.parse(readFileSync(join(out, "index.json"), "utf8")).complete, false);
  const { ino, mtimeNs } = statSync(join(out, "shard-00000.safetensors"), { bigint: true });
  const result = await run({ ...body, out });
  assert.equal([result.files, result.kept_files], [files, 1]);
  const kept = statSync(join(out, "shard-00000.safetensors"), { bigint: true });
  assert.equal([kept.ino, kept.mtimeNs], [ino, mtimeNs]);
  const names = readdirSync(whole).sort();
  assert.equal(readdirSync(out).sort(), names);
  for (const name of names) {
    if (name.endsWith(".lock")) continue;
    assert.ok(readFileSync(join(out, name)).equals(readFileSync(join(whole, name))), name);
  }
  const again = await run({ ...body, out });
  assert.equal([again.kept_files, again.tokens_per_second], [files, null]);
});

test("parts of a data set hold every text once, by its index", async () => {
  const { path, texts: own } = manyTexts("parts.jsonl", 20);
  const out = join(folder, "parts");
  const seen: number[] = [];
  for (const part of [0, 1, 2]) {
    const result = await run({ data: path, out, rows: "last", shard: [part, 3] });
    const index = JSON.parse(readFileSync(join(out, result.index as string), "utf8"));
    for (const { file, texts: count, offsets } of index.shards) {
      const bytes = readFileSync(join(out, file));
      for (let i = 0; i < count; i++) seen.push(bytes.readInt32LE(offsets.text_indices + 4 * i));
    }
  }
  assert.equal(seen.slice(0, 3), [0, 3, 6]);
  assert.equal(
    seen.sort((a, b) => a - b),
    own.map((_, i) => i),
  );
  assert.ok(existsSync(join(out, "index-2-of-3.json")));
});

test("a plan computes and writes nothing, and lists what would be written", async () => {
  const { path } = manyTexts("plan.jsonl");
  const out = join(folder, "planned");
  const plan = await run({ data: path, out, shard_tokens: 256, plan: true });
  assert.not.ok(existsSync(out));
  assert.equal([plan.index, plan.tokens_per_second], [null, null]);
  const done = await run({ data: path, out, shard_tokens: 256 });
  const sizes = readdirSync(out)
    .filter((name) => name.endsWith(".safetensors"))
    .map((name) => statSync(join(out, name)).size);
  assert.is(
    plan.bytes,
    sizes.reduce((a, b) => a + b, 0),
  );
  assert.equal([plan.files, plan.tokens], [sizes.length, done.tokens]);
});

test("impossible requests are refused in a sentence and change no file", async () => {
  const refused = (body: object) =>
    run(body).then(
      () => "",
      (error) => (error instanceof UserError ? error.message : `${error.stack}`),
    );
  const file = (name: string, content: string | Buffer) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const good = file("good.txt", "one\ntwo\n\nthree");
  const out = join(folder, "kept");
  await run({ data: good, out });
  assert.match(
    await refused({ data: good, out, rows: "last" }),
    /a different extraction: rows is "all" there and "last" here\./,
  );
  file("good.txt", "one\ntwo\n\nfour");
  assert.match(await refused({ data: good, out }), /contains a different extraction: data is/);
  const foreign = mkdtempSync(join(folder, "foreign-"));
  writeFileSync(join(foreign, "shard-00000.safetensors"), "mine");
  assert.match(await refused({ data: good, out: foreign }), /exists and does not belong to this extraction/);
  assert.is(readFileSync(join(foreign, "shard-00000.safetensors"), "utf8"), "mine");
  assert.match(
    await refused({ data: file("a.xml", "<text>x</text>") }),
    /has an unknown format: its name must end in \.jsonl, \.ndjson, \.txt or \.csv .* or it must be a folder of Hugging Face datasets\.$/,
  );
  assert.match(await refused({ data: join(folder, "absent.txt") }), /cannot be read \(ENOENT\)/);
  assert.match(await refused({ data: file("b.jsonl", '"a"\n{"txt": 1}') }), /Line 2 of b\.jsonl has neither/);
  assert.match(await refused({ data: file("c.jsonl", '"a"\n{') }), /Line 2 of c\.jsonl is not JSON/);
  assert.match(
    await refused({ data: file("d.jsonl", '"\\ud800"') }),
    /Line 1 of d\.jsonl contains an unpaired surrogate/,
  );
  assert.match(
    await refused({ data: file("e.txt", Buffer.from("ok\n\xff", "latin1")) }),
    /Line 2 of e\.txt is not UTF-8/,
  );
  assert.match(await refused({ data: file("f.txt", "\n \n") }), /There are no texts in f\.txt/);
  const long = file("g.txt", `short\n${"word ".repeat(60)}`);
  assert.match(
    await refused({ data: long, max_input_tokens: 20 }),
    /Text 1 of g\.txt has \d+ tokens; max_input_tokens allows 20/,
  );
  const cut = await run({ data: long, max_input_tokens: 20, too_long: "cut" });
  assert.equal([cut.cut_texts, cut.texts], [1, 2]);
  assert.match(
    await refused({ data: good, out: "/proc/tapline-nowhere" }),
    /^Cannot write to \/proc\/tapline-nowhere/,
  );
  assert.match(await refused({ data: good, layers: [8] }), /layers: 8 does not exist/);
});

test("a shard is a .safetensors file that its own header describes", async () => {
  const result = await run({ examples: [{ text: "a b c" }], layers: [0], rows: "last" });
  const file = readFileSync(join(result.place, "shard-00000.safetensors"));
  const size = Number(file.readBigUInt64LE(0));
  const { __metadata__: metadata, ...header } = JSON.parse(file.subarray(8, 8 + size).toString());
  assert.equal(header.layer_0.shape, [1, hidden]);
  assert.equal(metadata, { format: "pt", rows: "last" });
  let at = 0;
  for (const { data_offsets } of Object.values(header) as { data_offsets: [number, number] }[]) {
    assert.is(data_offsets[0], at);
    at = data_offsets[1];
  }
  assert.is(file.length, 8 + size + at);
});

test("a full disk gives one sentence and loses no finished file", async () => {
  const { path } = manyTexts("full.jsonl");
  const out = join(folder, "full");
  const handle = await promises.open(path);
  const prototype = Object.getPrototypeOf(handle) as { write: (...words: unknown[]) => Promise<unknown> };
  await handle.close();
  const { write } = prototype;
  let left = 400_000;
  prototype.write = function (this: unknown, ...words: unknown[]) {
    left -= words[2] as number;
    if (left > 0) return write.apply(this, words);
    return Promise.reject(Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" }));
  };
  try {
    await run({ data: path, out, shard_tokens: 256 });
    assert.unreachable();
  } catch (error) {
    assert.instance(error, UserError);
    assert.match(
      (error as Error).message,
      /^The disk is full \(ENOSPC\) at file 2 of \d+, which needs 2\d\d kB\. The 1 files before it are in [^\n]*; run the same extraction again to resume\.$/,
    );
  } finally {
    prototype.write = write;
  }
  assert.equal(
    readdirSync(out).filter((name) => !name.startsWith("index")),
    ["shard-00000.safetensors"],
  );
  const result = await run({ data: path, out, shard_tokens: 256 });
  assert.is(result.kept_files, 1);
});

test("a disk without enough room is reported before anything is computed", async () => {
  const statfs = (async () => ({ bavail: 20, bsize: 1000 })) as never;
  try {
    await withFiles({ statfs }, () =>
      run({ examples: texts.map((text) => ({ text })), out: join(folder, "no-room") }),
    );
    assert.unreachable();
  } catch (error) {
    assert.match(
      (error as Error).message,
      /^The extraction needs \d+\.?\d? kB, but only 20.0 kB are free on the disk of .*\.$/,
    );
  }
});

test.run();
