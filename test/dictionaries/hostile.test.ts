import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { UserError } from "../../src/contracts/user-error.js";
import { FormatError, quoted } from "../../src/formats/format-error.js";
import { encodeSafetensors } from "../../src/formats/safetensors.js";
import { readTorchPickle } from "../../src/formats/torch.js";
import { Dictionaries, type DictionaryClaims } from "../../src/library/index.js";
import { npyFile, zipOf } from "../support/npz-bytes.js";
import { torchFile } from "../support/torch-file.js";

// What mutants do not come upon by themselves.

const folder = mkdtempSync(join(tmpdir(), "tapline-hostile-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));
const dictionaries = new Dictionaries(folder);

const [hidden, features] = [3, 2];
const numbers = (...shape: number[]) => ({
  shape,
  data: new Float32Array(shape.reduce((product, length) => product * length, 1)).fill(0.5),
});

function place(files: Readonly<Record<string, string | Uint8Array>>): string {
  const path = mkdtempSync(join(folder, "place-"));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(path, name), content);
  return path;
}

const weights = encodeSafetensors({
  ...{ W_enc: numbers(hidden, features), W_dec: numbers(features, hidden) },
  ...{ b_enc: numbers(features), b_dec: numbers(hidden) },
});
const metadata = { hook_name: "blocks.3.hook_resid_post", model_name: "toy" };
const saeLens = (config: string | object) =>
  place({
    "cfg.json": typeof config === "string" ? config : JSON.stringify(config),
    "sae_weights.safetensors": weights,
  });

async function refused(path: string, reason: RegExp, claims: DictionaryClaims = {}): Promise<void> {
  const error = await dictionaries.add("one", path, claims).then(
    ({ layer }) => new Error(`it was kept, at block ${layer}`),
    (thrown: Error) => thrown,
  );
  assert.instance(error, UserError, String((error as Error).stack));
  assert.match((error as Error).message, reason);
  assert.match((error as Error).message, /^[^\p{Cc}]{10,500}[.)]$/u, "one sentence");
}

test("a dict that holds itself a thousand times, and names without end", () => {
  const text = (value: string) => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(value.length);
    return Buffer.concat([Buffer.from("X"), length, Buffer.from(value)]);
  };
  const pickle = (...parts: Buffer[]) =>
    Buffer.concat([Buffer.from([0x80, 2]), Buffer.from("}q\x00"), ...parts, Buffer.from(".")]);
  const itself = Buffer.from("h\x00s");
  const within = Array.from({ length: 1000 }, (_, i) => Buffer.concat([text(`k${i}`), itself]));
  for (const bytes of [pickle(...within), pickle(text("n".repeat(5000)), Buffer.from("K\x01s"))]) {
    assert.throws(
      () => readTorchPickle(bytes),
      (error: Error) => error instanceof FormatError && /more than 100000 names/.test(error.message),
    );
  }
});

test("settings as deep as a stack, of the wrong kind, or at odds with the weights", async () => {
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  await refused(
    saeLens(`{"architecture": ${deep}, "metadata": {"hook_name": "x"}}`),
    /is a list, not a string/,
  );
  await refused(
    saeLens(`{"k": ${deep}, "metadata": {"hook_name": "x"}}`),
    /k in the configuration is a list/,
  );
  await refused(saeLens({ architecture: "standard", metadata: deep }), /metadata is not a JSON object/);
  await refused(
    saeLens({ architecture: "standard", d_in: 4, metadata }),
    /d_in is 4, but W_enc has the shape \[3, 2\]/,
  );
  await refused(
    saeLens({ architecture: "standard", d_sae: 3, metadata }),
    /d_sae is 3, but W_enc has the shape \[3, 2\]/,
  );
  await refused(
    saeLens({ architecture: "standard", metadata: { ...metadata, model_name: "a\u001b[2Jb" } }),
    /The model's name .* "a\\u001b\[2Jb"/,
  );
  await refused(
    saeLens({ architecture: "standard", metadata: { ...metadata, model_name: "m".repeat(5000) } }),
    /has 5000 characters/,
  );
});

test("blocks that no model has", async () => {
  const tensors = {
    "encoder.weight": numbers(features, hidden),
    ...{ "encoder.bias": numbers(features), "decoder.weight": numbers(hidden, features) },
    bias: numbers(hidden),
  };
  for (const layer of [-1, 1.5, 1e9]) {
    const config = { trainer: { dict_class: "AutoEncoder", layer } };
    const path = place({ "ae.pt": torchFile(tensors), "config.json": JSON.stringify(config) });
    await refused(path, new RegExp(`According to the file it reads block ${layer};`));
  }
  const own = encodeSafetensors(
    { ...tensors, "decoder.bias": numbers(hidden) },
    { layer: "-2", architecture: "relu" },
  );
  const normalisation = zipOf({
    mean: npyFile(new Float32Array(hidden), [hidden]),
    scale: npyFile(Float32Array.of(1), []),
  });
  await refused(
    place({ "sae-layer-2.safetensors": own, "sae-normalization-2.npz": normalisation }),
    /block -2;/,
  );
});

test("an archive that would burst, and one whose header never ends", async () => {
  const arrays = { W_enc: npyFile(new Float32Array(6), [3, 2]) };
  const burst = zipOf(arrays);
  // The unpacked size in its directory.
  const directory = burst.readUInt32LE(burst.length - 6);
  burst.writeUInt32LE(200_000_000, directory + 24);
  await refused(place({ "params.npz": burst }), /arrays of the \.npz file have more than \d+ bytes/, {
    layer: 1,
  });
  const long = Buffer.concat([npyFile(new Float32Array(6), [3, 2]), Buffer.alloc(70_000, " ")]);
  long.writeUInt8(2, 6); // the version whose header's length has four bytes
  long.writeUInt32LE(69_000, 8);
  await refused(
    place({ "params.npz": zipOf({ W_enc: long }) }),
    /has a header of 69000 bytes; at most 65536/,
    { layer: 1 },
  );
});

test("something other than a file in a file's place", async () => {
  const link = place({ "cfg.json": "{}" });
  mkdirSync(join(link, "inner"));
  symlinkSync(join(link, "inner"), join(link, "sae_weights.safetensors"));
  writeFileSync(join(link, "cfg.json"), JSON.stringify({ architecture: "standard", metadata }));
  await refused(link, /"sae_weights\.safetensors" is not a regular file\./);
  const gone = place({ "sae_weights.safetensors": weights });
  symlinkSync(join(gone, "nowhere"), join(gone, "cfg.json"));
  await refused(gone, /"cfg\.json" is not a regular file\./);
  if (process.platform === "win32") return;
  const pipe = place({ "sae_weights.safetensors": weights });
  execFileSync("mkfifo", [join(pipe, "cfg.json")]);
  await refused(pipe, /"cfg\.json" is not a regular file\./);
  const odd = place({ "a\u001b[31m.pt": "", "b\n.pt": "" });
  await refused(odd, /2 dictionaries, such as "a\\u001b\[31m\.pt", "b\\n\.pt"; specify one\./);
});

test("a name in a sentence moves no cursor and turns no text around", () => {
  assert.is(quoted("a\u009b31m\u202eb\u2028\u007f"), '"a\\u009b31m\\u202eb\\u2028\\u007f"');
});

test.run();
