/** What may be said of a file in the address that it is sent to: the bounds of every parameter. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { encodeSafetensors } from "../../src/formats/safetensors.js";
import { createApp, type Listening, listen, routesOf } from "../../src/http/index.js";
import { libraryEndpoints, uploadEndpoints } from "../../src/library/endpoints.js";
import { Dictionaries, Lenses, Probes, Profiles, Vectors } from "../../src/library/index.js";
import { npyFile, zipOf } from "../support/npz-bytes.js";
import { send } from "../support/request.js";

const home = mkdtempSync(join(tmpdir(), "tapline-library-routes-"));
const named: (string | undefined)[] = [];
const model = { id: "m", fingerprint: "f".repeat(64), nEmbd: 2, nLayer: 256 };
let service: Listening;
test.before(async () => {
  const modelNamed = async (name: string | undefined) => {
    named.push(name);
    return model;
  };
  const parts = {
    vectors: new Vectors(home),
    probes: new Probes(home),
    dictionaries: new Dictionaries(home),
    lenses: new Lenses(home),
  };
  const profiles = new Profiles(home, parts);
  const router = routesOf(uploadEndpoints, { ...parts, profiles, modelNamed });
  service = await listen(createApp({ routers: [router] }), { port: 0 });
});
test.after(async () => {
  await service.close();
  rmSync(home, { recursive: true, force: true });
});

const one = zipOf({ any: npyFile(Float32Array.of(3, 4), [2]) });
const put = async (said: Record<string, string>) => {
  const query = new URLSearchParams({ layer: "1", ...said });
  return send(`${service.url}/lab/vectors/v?${query}`, "PUT", one);
};

test("a model is called by one letter, or by four thousand and ninety-six", async () => {
  for (const name of ["m", "0", "m".repeat(4096)]) {
    assert.is((await put({ model: name })).status, 200, name.slice(0, 9));
    assert.is(named.pop(), name);
  }
  for (const name of ["", "m".repeat(4097)]) {
    const { status, body } = await put({ model: name });
    assert.is(status, 400);
    assert.match(body.error, /^model: /);
  }
  assert.equal(named, [], "nobody looked for it");
});

test("a vector is renamed, unless there is none or the new name is taken", async () => {
  const rename = async (name: string, to: string) => {
    const { status, body } = await send(`${service.url}/lab/vectors/${name}/rename`, "POST", { name: to });
    return [status, body.error ?? body.name];
  };
  assert.is((await put({})).status, 200);
  assert.equal(await rename("v", "w"), [200, "w"]);
  assert.equal(await rename("v", "x"), [404, "There is no vector named v; there are w."]);
  assert.is((await put({})).status, 200);
  assert.equal(await rename("w", "v"), [400, "There is already a vector named v."]);
  assert.is((await rename("w", "../x"))[0], 400);
  const { body } = await send(`${service.url}/lab/vectors/w`, "GET");
  assert.equal([body.name, body.layers.length], ["w", 1], "what was not renamed is still there");
  await send(`${service.url}/lab/vectors/w`, "DELETE");
});

test("a layer is a whole number from 0 to 255", async () => {
  for (const layer of ["0", "255"]) {
    const { status, body } = await put({ layer });
    assert.equal([status, body.layers], [200, [{ layer: Number(layer), length: 5 }]]);
  }
  for (const layer of ["256", "-1", "1.5", "", "x"]) {
    const { status, body } = await put({ layer });
    assert.is(status, 400, layer);
    assert.match(body.error, /^layer: /);
  }
});

test("an entry has from 1 to 200 characters", async () => {
  // The file isn't a checkpoint, which shows only after the download.
  const sentence = async (entry: string) => (await put({ format: "capping", entry })).body.error as string;
  for (const entry of ["e", "e".repeat(200)]) assert.not.match(await sentence(entry), /^entry: /);
  for (const entry of ["", "e".repeat(201)]) assert.match(await sentence(entry), /^entry: /);
});

test("a vector is returned as JSON or as a file in the requested format", async () => {
  await put({});
  const get = (query: string) => send(`${service.url}/lab/vectors/v${query}`, "GET");
  for (const query of ["", "?format=json"]) {
    const { status, headers, body } = await get(query);
    assert.equal([status, headers["content-type"]], [200, "application/json; charset=utf-8"]);
    assert.equal([body.name, body.layers], ["v", [{ layer: 1, length: 5 }]]);
  }
  for (const [form, start] of [
    ["safetensors", '{"__metadata__"'],
    ["gguf", "GGUF"],
  ] as const) {
    const { status, headers, bytes } = await get(`?format=${form}`);
    assert.equal([status, headers["content-type"]], [200, "application/octet-stream"]);
    assert.match(bytes.subarray(0, 40).toString("latin1"), start);
  }
  const wrong = await get("?format=npz");
  assert.equal([wrong.status, wrong.body], [400, { error: "format: must be json, safetensors or gguf." }]);
});

test("impossible names are refused before any lookup; missing ones are 404", async () => {
  for (const kind of ["vectors", "probes"]) {
    for (const name of ["..%2Fv", ".v", "a%20b"]) {
      for (const method of ["GET", "DELETE", "PUT"]) {
        const asked = send(`${service.url}/lab/${kind}/${name}`, method, method === "PUT" ? one : undefined);
        const { status, body } = await asked;
        assert.is(status, 400, `${method} ${kind} ${name}`);
        assert.match(body.error, /^name: /);
      }
    }
    for (const method of ["GET", "DELETE"])
      assert.is((await send(`${service.url}/lab/${kind}/nobody`, method)).status, 404);
  }
});

test("a file of another model is accepted with restamp in the address: 1 or true", async () => {
  const metadata = { model: "other", model_fingerprint: "0".repeat(64) };
  const file = encodeSafetensors({ layer_1: { shape: [2], data: Float32Array.of(3, 4) } }, metadata);
  const sent = (query: string) => send(`${service.url}/lab/vectors/v${query}`, "PUT", file);
  for (const query of ["?restamp", "?restamp=1", "?restamp=true"]) {
    const { status, body } = await sent(query);
    assert.equal([status, body.model], [200, { id: "m", fingerprint: model.fingerprint }], query);
  }
  for (const query of ["?restamp=0", "?restamp=false", "?restamp=no"]) {
    const { status, body } = await sent(query);
    assert.equal([status, body], [400, { error: "restamp: must be 1 or absent." }]);
  }
  const { status, body } = await sent("");
  assert.is(status, 400);
  assert.match(body.error, /^The file was made for other \(0{16}\), not for m \(f{16}\)\.$/);
});

test("a file of more than 64 MiB is refused by its announced length", async () => {
  const announcing = async (bytes: number) => {
    const { request } = await import("node:http");
    return new Promise<number>((resolve, reject) => {
      const headers = { "Content-Length": bytes };
      const asked = request(`${service.url}/lab/vectors/v`, { method: "PUT", headers, agent: false });
      asked.on("response", (response) => {
        resolve(response.statusCode as number);
        asked.destroy();
      });
      asked.on("error", reject);
      asked.flushHeaders();
    });
  };
  assert.is(await announcing(64 * 1024 ** 2 + 1), 400);
});

test("each of the five kinds has the same four endpoints", () => {
  const kinds = ["vectors", "probes", "profiles", "dictionaries", "lenses"];
  const places = libraryEndpoints.map(({ at }) => at).filter((at) => !at.startsWith("POST"));
  const expected = kinds.flatMap((kind) => [
    `GET /lab/${kind}`,
    ...["GET", "PUT", "DELETE"].map((method) => `${method} /lab/${kind}/{name}`),
  ]);
  assert.equal(places, expected);
});

test.run();
