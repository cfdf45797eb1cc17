/** `/lab/weights` through the TypeScript client: files of the demo model's weights, compared with its GGUF and its logits. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ServingModel } from "../../src/client/index.js";
import { Weights } from "../../src/inference/weights.js";
import { demo } from "../native/demo-model.js";
import { startServer, type TestServer } from "./support/serving.js";

let home: string;
let server: TestServer;
let client: ServingModel;

test.before(async () => {
  home = mkdtempSync(join(tmpdir(), "tapline-weights-"));
  server = await startServer({ home, threads: 1 });
  client = new ServingModel(server.url);
});
test.after(async () => {
  await server.close();
  rmSync(home, { recursive: true, force: true });
});

/** The numbers of a .npy file of format 1.0. */
function numbers(path: string): Float32Array {
  const bytes = readFileSync(path);
  const start = 10 + bytes.readUInt16LE(8);
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset + start, bytes.byteOffset + bytes.length));
}

test("lists names, shapes and the file's metadata", async () => {
  const { tensors, metadata } = await client.weights();
  assert.is(metadata["general.architecture"], "qwen3");
  const shapes = new Map(tensors.map(({ name, shape }) => [name, shape]));
  assert.equal(shapes.get("blk.0.attn_norm.weight"), [128]);
  assert.equal(shapes.get("blk.7.attn_q.weight"), [128, 128]);
});

test("a row of the embedding is the first block's input", async () => {
  const [file] = await client.weightFiles(["token_embd.weight"]);
  const token = 7;
  const { tensors } = await client.forward({ sequences: [[token]], capture: ["block_in.0"] });
  const row = numbers(file!.path).slice(token * 128, (token + 1) * 128);
  assert.equal(row, tensors.get("block_in.0")!.data);
  assert.equal(file!.shape.at(-1), 128);
});

test("an unknown name is refused with the name", async () => {
  const refused = await client.weightFiles(["nothing"]).catch((error) => error);
  assert.match(refused.message, /"nothing" is not a weight of this model\.$/);
});

test("parts of killed processes are deleted, those of running ones are not", async () => {
  const [known] = await client.weightFiles(["output_norm.weight"]);
  const folder = dirname(known!.path);
  const left = join(folder, "blk.0.ffn_up.weight.npy.999999999.part");
  const busy = join(folder, `blk.1.ffn_up.weight.npy.${process.ppid}.part`);
  writeFileSync(left, "half");
  writeFileSync(busy, "half");
  await client.weightFiles(["blk.0.ffn_up.weight"]);
  assert.not.ok(existsSync(left));
  assert.ok(existsSync(busy));
  rmSync(busy);
  assert.equal(
    readdirSync(folder).filter((name) => name.endsWith(".part")),
    [],
  );
});

test("a file that could not be read once is read again", async () => {
  const folder = join(home, "away");
  mkdirSync(folder);
  const path = join(folder, "model.gguf");
  const weights = new Weights(
    { path, weights: [{ name: "model.gguf" }] } as never,
    { fingerprint: "away" },
    home,
  );
  await weights.list().then(
    () => assert.unreachable(),
    (error) => assert.match(error.message, /ENOENT/),
  );
  writeFileSync(path, readFileSync(demo));
  const { tensors } = await weights.list();
  assert.ok(tensors.some(({ name }) => name === "token_embd.weight"));
});

test.run();
