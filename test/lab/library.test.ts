import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { encodeSafetensors } from "../../src/formats/safetensors.js";
import { Vectors } from "../../src/library/index.js";
import { demoLensPath, demoModelPath } from "../../src/models/resolve.js";
import { npyFile, zipOf } from "../support/npz-bytes.js";
import { send } from "../support/request.js";
import { type Harness, openHarness } from "./harness.js";

let harness: Harness;
const logged: string[] = [];
const width = 128;
const ask = (method: string, path: string, body?: unknown, headers = {}) =>
  send(`${harness.lab.url}/lab/${path}`, method, body, headers);
test.before(async () => {
  harness = await openHarness({ log: (line) => void logged.push(line) });
});
test.after(() => harness.close());

/** Of the size, the first megabyte and 256 blocks of the embedded model, computed here. */
function fingerprint(): string {
  const bytes = readFileSync(demoModelPath);
  const hash = createHash("sha256")
    .update(`${bytes.length}\n`)
    .update(bytes.subarray(0, 2 ** 20));
  const step = Math.floor((bytes.length - 2 ** 20) / 256);
  for (let block = 0; step > 4096 && block < 256; block++) {
    const start = 2 ** 20 + block * step;
    hash.update(bytes.subarray(start, start + 4096));
  }
  return hash.digest("hex");
}

const ramp = Float32Array.from({ length: width }, (_, index) => index / 8);

test("vectors are saved through the Lab in the store that servers read, and deleted again", async () => {
  assert.equal((await ask("GET", "vectors")).body, { vectors: [] });
  const file = zipOf({ layer_3: npyFile(ramp, [width]) });
  const put = await ask("PUT", "vectors/ramp?model=demo", file);
  assert.is(put.status, 200, JSON.stringify(put.body));
  assert.equal(put.body.model, { id: "demo", fingerprint: fingerprint() });
  assert.equal([put.body.n_embd, put.body.layers[0].layer], [width, 3]);
  const path = join(harness.home, "library", "vectors", "ramp.safetensors");
  if (process.platform !== "win32") assert.is(statSync(path).mode & 0o777, 0o600);
  const model = { id: "x", fingerprint: fingerprint(), nEmbd: width, nLayer: 8 };
  const { vector } = await new Vectors(harness.home).layer("ramp", 3, model);
  assert.equal([...vector], [...ramp]);
  // An exported file names its model, so it can be imported without naming it.
  const { bytes } = await ask("GET", "vectors/ramp?format=safetensors");
  const again = await ask("PUT", "vectors/again", bytes);
  assert.equal([again.status, again.body.sha256, again.body.model], [200, put.body.sha256, put.body.model]);
  assert.is((await ask("DELETE", "vectors/again")).status, 200);
  const gone = await ask("GET", "vectors/again");
  assert.equal([gone.status, gone.body.error], [404, "There is no vector named again; there are ramp."]);
  assert.is((await ask("DELETE", "vectors/again")).status, 404);
});

test("probes are also saved, listed and deleted", async () => {
  const ones = new Float32Array(width).fill(1);
  const probe = zipOf({
    weight: npyFile(ramp, [width]),
    mean: npyFile(ones, [width]),
    std: npyFile(ones, [width]),
    bias: npyFile(Float32Array.of(-0.5), []),
  });
  const put = await ask("PUT", "probes/odd?model=demo&layer=4", probe);
  assert.is(put.status, 200, JSON.stringify(put.body));
  assert.equal([put.body.layer, put.body.n_embd, put.body.operation], [4, width, "probe"]);
  assert.is((await ask("GET", "probes/odd")).body.sha256, put.body.sha256);
  assert.equal((await ask("DELETE", "probes/odd")).body, { deleted: true });
});

test("dictionaries are read from a folder in a separate process", async () => {
  assert.equal((await ask("GET", "dictionaries")).body, { dictionaries: [] });
  const folder = join(harness.home, "published");
  mkdirSync(folder);
  const settings = {
    architecture: "standard",
    d_in: 3,
    d_sae: 2,
    metadata: { hook_name: "blocks.1.hook_resid_post" },
  };
  writeFileSync(join(folder, "cfg.json"), JSON.stringify(settings));
  const matrix = (shape: number[]) => ({
    shape,
    data: new Float32Array(shape.reduce((a, b) => a * b)).fill(0.5),
  });
  const weights = { W_enc: matrix([3, 2]), W_dec: matrix([2, 3]), b_enc: matrix([2]), b_dec: matrix([3]) };
  writeFileSync(join(folder, "sae_weights.safetensors"), encodeSafetensors(weights));
  const put = await ask("PUT", "dictionaries/own", { from: folder });
  assert.is(put.status, 200, JSON.stringify(put.body));
  assert.equal([put.body.name, put.body.features, put.body.n_embd, put.body.layer], ["own", 2, 3, 1]);
  assert.equal((await ask("GET", "dictionaries/own")).body, put.body);
  assert.equal((await ask("GET", "dictionaries")).body, { dictionaries: [put.body] });
  for (const [body, sentence] of [
    [{ from: join(folder, "none") }, /^No file or folder .*none\.$/],
    [{ from: folder, layer: 2 }, /^According to the file it reads block 1, not 2\.$/],
    [{ from: folder, point: "mid" }, /^According to its publisher it reads block_out, not mid\.$/],
    [{ from: folder, layers: 2 }, /unknown field "layers"/],
    [{}, /from/],
  ] as const) {
    const { status, body: told } = await ask("PUT", "dictionaries/other", body);
    assert.is(status, 400, JSON.stringify(told));
    assert.match(told.error, sentence);
  }
  assert.equal((await ask("DELETE", "dictionaries/own")).body, { deleted: true });
  const gone = await ask("GET", "dictionaries/own");
  assert.equal(
    [gone.status, gone.body.error],
    [404, "There is no dictionary named own; there are no dictionaries yet."],
  );
  assert.is((await ask("DELETE", "dictionaries/own")).status, 404);
});

test("a reader that dies silently is a service fault, and its last output is logged", async () => {
  const { execArgv } = process;
  const last = `process.stderr.write("x".repeat(5000) + "its last words"); process.exitCode = 3; throw "";`;
  process.execArgv = ["--import", `data:text/javascript,${encodeURIComponent(last)}`];
  try {
    const { status, body } = await ask("PUT", "dictionaries/none", { from: harness.home });
    assert.is(status, 500);
    assert.not.match(body.error, /xxx|last words/);
  } finally {
    process.execArgv = execArgv;
  }
  assert.match(
    logged.join("\n"),
    /The library process exited without a result for this dictionary: x{1000,}its last words/,
  );
  assert.ok(logged.every((line) => line.length < 5000));
});

test("lenses are also listed, imported from a file and deleted", async () => {
  assert.equal((await ask("GET", "lenses")).body, { lenses: [] });
  const put = await ask("PUT", "lenses/own", { from: demoLensPath });
  assert.equal(
    [put.status, put.body.kind, put.body.n_embd],
    [200, "jacobian", 128],
    JSON.stringify(put.body),
  );
  assert.equal((await ask("GET", "lenses/own")).body, put.body);
  assert.equal((await ask("GET", "lenses")).body, { lenses: [put.body] });
  const refused = await ask("PUT", "lenses/other", { from: join(harness.home, "none") });
  assert.equal(
    [refused.status, refused.body.error],
    [400, `No file or folder ${join(harness.home, "none")}.`],
  );
  assert.is((await ask("PUT", "lenses/other", {})).status, 400);
  assert.equal((await ask("DELETE", "lenses/own")).body, { deleted: true });
  assert.is((await ask("GET", "lenses/own")).status, 404);
});

test("invalid requests are refused in one sentence", async () => {
  const file = zipOf({ layer_3: npyFile(ramp, [width]) });
  const other = encodeSafetensors(
    { layer_3: { shape: [width], data: ramp } },
    { model: "other", model_fingerprint: "0".repeat(64) },
  );
  const narrow = zipOf({ layer_3: npyFile(ramp.subarray(1), [width - 1]) });
  const cases: [string, unknown, RegExp][] = [
    ["vectors/a", file, /The file does not record its model/],
    [
      "vectors/a?model=nowhere/at-all",
      file,
      /^model: no local model is named nowhere\/at-all; pass its file\.$/,
    ],
    ["vectors/a?model=demo", other, /was made for other \(0{16}\), not for demo \([0-9a-f]{16}\)/],
    ["vectors/a?model=demo", narrow, /127 values per layer; the model's hidden size is 128/],
    [
      "vectors/a?model=demo",
      zipOf({ layer_8: npyFile(ramp, [width]) }),
      /layer 8; the model has layers 0 to 7/,
    ],
    ["vectors/a?model=demo&layer=x", file, /layer/],
    ["vectors/a?model=demo&format=other", file, /format/],
    ["vectors/a?entry=one", file, /^entry needs a format\.$/],
    ["vectors/a?model=demo&restamp=2", file, /^restamp: must be 1 or absent\.$/],
    ["probes/a?entry=one", file, /^format and entry are for vectors only/],
    ["probes/a?format=persona", file, /^format and entry are for vectors only/],
    ["vectors/-a", file, /^name: letters, digits, dots.* got "-a"\.$/],
    ["probes/a?model=demo&layer=3", file, /no array weight/],
  ];
  for (const [path, body, sentence] of cases) {
    const { status, body: told } = await ask("PUT", path, body);
    assert.is(status, 400, `${path}: ${JSON.stringify(told)}`);
    assert.match(told.error, sentence);
  }
  for (const said of ["restamp", "restamp=true", "restamp=1"]) {
    const again = await ask("PUT", `vectors/a?model=demo&${said}`, other);
    assert.is(again.status, 200, said);
  }
  const form = await ask("GET", "vectors/a?format=pt");
  assert.equal([form.status, form.body.error], [400, "format: must be json, safetensors or gguf."]);
  assert.is((await ask("GET", "vectors/a?format=json")).body.name, "a");
  const known = await ask("PUT", "vectors/a?model=demo&restamp=1", other);
  assert.is(known.status, 200, "its caller knows better");
  assert.is(known.body.model.fingerprint, fingerprint());
});

test("creating is left to services with a model; access rules are the Lab's", async () => {
  for (const noun of ["vector", "probe"]) {
    const { status, body, headers } = await ask("POST", `${noun}s`, {});
    assert.equal([status, headers.allow], [405, "GET"]);
    assert.match(body.error, new RegExp(`^To make a ${noun} from texts, .* tapline serve \\(port 8971\\)`));
  }
  const page = await ask("GET", "vectors", undefined, { Origin: "http://localhost:3000" });
  assert.is(page.status, 403);
  assert.is((await ask("PUT", "vectors/a", "", { Cookie: "a=b" })).status, 403);
});

test.run();
