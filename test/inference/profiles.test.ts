/** Requests whose model is MODEL@NAME, on a stand-in for the engine and a real library. */
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Dictionaries, Lenses, Probes, Profiles, Vectors } from "../../src/library/index.js";
import { temporaryFolder } from "../support/temporary.js";
import { type Reply, type Stand, stand, usual } from "./support/stand.js";

const model = { id: "m", fingerprint: "f", nEmbd: 2, nLayer: 4 };
const folder = temporaryFolder("profiles");
const elsewhere = "203.0.113.9";
const zeros = {
  weight: Float32Array.of(1, 0),
  mean: Float32Array.of(0, 0),
  std: Float32Array.of(1, 1),
  bias: 0,
};

interface Bench extends Stand {
  vectors: Vectors;
  profiles: Profiles;
  save(name: string, body: object): Promise<unknown>;
}

/** A service with the vector `kind` at layer 2, the probe `calm`, and offered profiles. */
async function bench(offered: string[] = [], reply: Reply = usual, info = {}): Promise<Bench> {
  const home = mkdtempSync(join(folder, "home-"));
  const parts = {
    vectors: new Vectors(home),
    probes: new Probes(home),
    dictionaries: new Dictionaries(home),
    lenses: new Lenses(home),
  };
  const profiles = new Profiles(home, parts);
  await parts.vectors.put("kind", new Map([[2, Float32Array.of(3, 4)]]), model, { note: "" });
  await parts.probes.put("calm", 1, zeros, model, { note: "" });
  const library = { ...parts, profiles, model };
  const made = await stand(info, { library, offered }, reply);
  return {
    ...made,
    vectors: parts.vectors,
    profiles,
    async save(name, body) {
      const { status, body: stored } = await made.send("PUT", `/lab/profiles/${name}`, body);
      assert.is(status, 200, JSON.stringify(stored));
      return stored;
    },
  };
}

const steer = (strength: number) => ({ kind: "steer", vector: "kind", strength, strength_unit: "row_norm" });
const polite = { tapline: { interventions: [steer(0.2)] }, description: "Polite." };
const chat = (name: string, more = {}) => ({
  ...{ model: name, messages: [{ role: "user", content: "Hi" }], ...more },
});
const told = ({ status, body }: { status: number; body: { error: { message: string } } }) => [
  status,
  body.error.message,
];

test("requests run with the edits of the profile that their model names", async () => {
  const { save, engine } = await bench();
  await save("polite", polite);
  for (const [path, body] of [
    ["/v1/chat/completions", chat("m@polite")],
    ["/v1/completions", { model: "m@polite", prompt: "Hi" }],
    ["/v1/messages", { ...chat("m@polite"), max_tokens: 5 }],
    ["/v1/responses", { model: "m@polite", input: "Hi" }],
  ] as const) {
    const { live } = await engine(path, body);
    const [edit] = live?.edits ?? [];
    assert.equal(
      [live?.edits?.length, edit?.layer, edit?.strength, edit?.unit, edit?.vector],
      [1, 2, 0.2, "row_norm", Float32Array.of(3, 4)],
      path,
    );
  }
  assert.is((await engine("/v1/chat/completions", chat("m"))).live, undefined);
});

test("answers carry the profile's name; lists of models show it", async () => {
  const { save, post, send } = await bench();
  await save("polite", polite);
  assert.is((await post("/v1/chat/completions", chat("m@polite"))).body.model, "m@polite");
  assert.is((await post("/v1/responses", { model: "m@polite", input: "Hi" })).body.model, "m@polite");
  const { body } = await send("GET", "/v1/models");
  assert.equal(
    body.data.map(({ id, parent, profile }: Record<string, unknown>) => [id, parent, profile]),
    [
      ["m", undefined, undefined],
      ["m@polite", "m", { name: "polite", description: "Polite." }],
    ],
  );
  assert.is((await send("GET", "/v1/models/m@polite")).body.id, "m@polite");
  assert.is((await send("GET", "/v1/models/m@rude")).status, 404);
});

test("a request's own interventions follow those of its profile", async () => {
  const { save, engine } = await bench();
  await save("polite", polite);
  const own = { interventions: [{ kind: "scale", layer: 1, strength: 2 }], watch: { probes: ["calm"] } };
  const { live } = await engine("/v1/chat/completions", chat("m@polite", { tapline: own }));
  assert.equal(
    live?.edits?.map(({ layer, scale }) => [layer, scale]),
    [
      [2, undefined],
      [1, 2],
    ],
  );
  assert.is(live?.watch?.probes, true);
});

test("refuses watch in both, and too many interventions together", async () => {
  const { save, refusal } = await bench();
  const scale = { kind: "scale", layer: 1, strength: 2 };
  await save("full", { tapline: { interventions: Array(16).fill(scale), watch: { probes: ["calm"] } } });
  const asked = (tapline: object) => refusal("/v1/chat/completions", chat("m@full", { tapline }));
  assert.equal(await asked({ watch: { probes: ["calm"] } }), [
    ...[400, "tapline.watch: the profile full has its own.", "tapline.watch"],
  ]);
  assert.equal(await asked({ interventions: [scale] }), [
    400,
    "tapline.interventions: at most 16 together with those of the profile full, got 17.",
    "tapline.interventions",
  ]);
});

test("refuses unknown profiles and paths that have no edits", async () => {
  const { save, refusal, post } = await bench();
  assert.equal(await refusal("/v1/chat/completions", chat("m@rude")), [
    ...[404, "m has no profile rude; there are none.", "model"],
  ]);
  await save("polite", polite);
  assert.equal(await refusal("/v1/chat/completions", chat("m@rude")), [
    ...[404, "m has no profile rude; there are polite.", "model"],
  ]);
  assert.equal(await refusal("/v1/chat/completions", chat("other@polite")), [
    ...[404, "The model other@polite is not served here; m is.", "model"],
  ]);
  assert.equal(await refusal("/v1/rerank", { model: "m@polite", query: "a", documents: ["b"] }), [
    ...[400, "model: /v1/rerank does not run with a profile, got m@polite.", "model"],
  ]);
  assert.is((await post("/v1/chat/completions/input_tokens", chat("m@polite"))).status, 200);
});

test("a profile whose vector changed is refused and not listed", async () => {
  const { save, vectors, post, send } = await bench();
  await save("polite", polite);
  const { sha256: then } = await vectors.get("kind");
  await vectors.put("kind", new Map([[2, Float32Array.of(4, 3)]]), model, { note: "" });
  const { sha256: now } = await vectors.get("kind");
  const sentence =
    `The vector kind has changed since the profile polite was saved (${then.slice(0, 16)} then, ` +
    `${now.slice(0, 16)} now); save the profile again to accept it.`;
  assert.equal(told(await post("/v1/chat/completions", chat("m@polite"))), [409, sentence]);
  assert.equal((await send("GET", "/lab/profiles/polite")).body.changed, [sentence]);
  assert.equal((await send("GET", "/v1/models")).body.data.length, 1);
  await vectors.remove("kind");
  assert.equal(told(await post("/v1/chat/completions", chat("m@polite"))), [
    ...[409, "The profile polite needs the vector kind, which no longer exists."],
  ]);
});

test("a profile of another model is refused and not listed", async () => {
  const { profiles, post, send } = await bench();
  const other = { ...model, id: "other", fingerprint: "abcdef0123456789ff" };
  const scale = { tapline: { interventions: [{ kind: "scale" as const, layer: 1, strength: 2 }] } };
  await profiles.put("double", scale, other);
  assert.equal(told(await post("/v1/chat/completions", chat("m@double"))), [
    409,
    "The profile double was saved for other (abcdef0123456789), not for m (f).",
  ]);
  assert.equal((await send("GET", "/v1/models")).body.data.length, 1);
  await profiles.put("double", scale, null);
  assert.is((await post("/v1/chat/completions", chat("m@double"))).status, 200);
});

test("saving checks the settings against the model and the library", async () => {
  const { send } = await bench();
  const put = async (tapline: object) => {
    const answer = await send("PUT", "/lab/profiles/x", { tapline });
    return [answer.status, answer.body.error];
  };
  assert.equal(await put({}), [400, "tapline: a profile needs interventions, watch or stop_when."]);
  const [status, message] = await put({ interventions: [{ kind: "scale", layer: 9, strength: 2 }] });
  assert.equal(
    [status, message],
    [400, "tapline.interventions[0].layer: layer 9 does not exist; the model has layers 0 to 3."],
  );
  assert.match(String((await put({ stop_when: { probe: "none", above: 0.5 } }))[1]), /no probe named none/);
  assert.match(String((await put({ pair: true }))[1]), /pair/);
});

/** What the engine answers to a request with readings. */
const inside = {
  id: "x",
  ...{ object: "chat.completion", created: 1, model: "m" },
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "Hi" },
      finish_reason: "stop",
      tapline: { interventions: [{ vector: "kind", sha256: "s" }], tokens: [{ probes: { calm: 1 } }] },
    },
  ],
};

test("other machines get offered profiles only, and nothing of their inside", async () => {
  const reply: Reply = () => ({ body: JSON.stringify(inside) });
  const machine = await bench(["polite"], reply);
  const { save, post, send, asked } = machine;
  await save("polite", { tapline: { ...polite.tapline, watch: { layers: [1], norms: true, states: true } } });
  await save("secret", polite);
  const local = await post("/v1/chat/completions", chat("m@polite"));
  assert.is(local.body.choices[0].tapline.interventions[0].vector, "kind");
  assert.ok(asked.at(-1)?.live?.watch, "a program on this machine gets the readings");
  machine.comeFrom(elsewhere);
  const answer = await post("/v1/chat/completions", chat("m@polite"));
  assert.is(answer.status, 200);
  assert.not.match(answer.bytes.toString(), /kind|sha256|calm|tapline/);
  const { live } = asked.at(-1)!;
  assert.equal([live?.edits?.length, live?.watch], [1, undefined]);
  assert.equal(told(await post("/v1/chat/completions", chat("m@secret"))), [
    ...[404, "m has no profile secret; there are polite."],
  ]);
  const own = { tapline: { watch: { layers: [1], norms: true } } };
  assert.is((await post("/v1/chat/completions", chat("m@polite", own))).status, 403);
  const { body } = await send("GET", "/v1/models");
  assert.equal(
    body.data.map(({ id }: { id: string }) => id),
    ["m", "m@polite"],
  );
  assert.is((await send("GET", "/lab/profiles")).status, 403);
});

test("streams for other machines have no readings either", async () => {
  const events = [inside, { ...inside, choices: [] }].map((one) => `data: ${JSON.stringify(one)}\n\n`);
  const reply: Reply = () => ({
    contentType: "text/event-stream",
    parts: (async function* () {
      for (const data of [...events, "data: [DONE]\n\n"]) yield { data, tokens: [1] };
    })(),
  });
  const machine = await bench(["polite"], reply);
  await machine.save("polite", polite);
  machine.comeFrom(elsewhere);
  const { bytes } = await machine.post("/v1/chat/completions", chat("m@polite", { stream: true }));
  const text = bytes.toString();
  assert.not.match(text, /kind|sha256|tapline/);
  assert.match(text, /"model":"m@polite"/);
  assert.match(text, /data: \[DONE\]/);
});

test("a changed profile hides its names from other machines", async () => {
  const machine = await bench(["polite"]);
  await machine.save("polite", polite);
  await machine.vectors.remove("kind");
  machine.comeFrom(elsewhere);
  assert.equal(told(await machine.post("/v1/chat/completions", chat("m@polite"))), [
    ...[409, "The profile polite cannot be served at the moment."],
  ]);
});

test("routers get the list that other machines get", async () => {
  const { save, send } = await bench(["polite"]);
  await save("polite", polite);
  await save("secret", polite);
  const { body } = await send("GET", "/v1/models", undefined, { "X-Tapline-Route": "1.1 router" });
  assert.equal(
    body.data.map(({ id }: { id: string }) => id),
    ["m", "m@polite"],
  );
});

test("hostile names find no profile and no file", async () => {
  const { save, post } = await bench();
  await save("polite", polite);
  for (const name of [
    "../vectors/kind",
    "polite/../polite",
    "",
    "@",
    "polite\u0000",
    "POLITE",
    "polite.json",
    "x".repeat(5000),
  ]) {
    const answer = await post("/v1/chat/completions", chat(`m@${name}`));
    assert.ok([400, 404].includes(answer.status), `${name.slice(0, 20)}: ${answer.status}`);
  }
});

test("embeddings run with the profile's edits and not with its readings", async () => {
  const info = { embeddings: true };
  const reply: Reply = () => ({ body: JSON.stringify({ model: "m", data: [] }) });
  const { save, engine, post } = await bench([], reply, info);
  await save("polite", { tapline: { ...polite.tapline, watch: { probes: ["calm"] } } });
  const { live } = await engine("/v1/embeddings", { model: "m@polite", input: "Hi" });
  assert.equal([live?.edits?.length, live?.watch], [1, undefined]);
  assert.is((await post("/v1/embeddings", { model: "m@polite", input: "Hi" })).body.model, "m@polite");
});

test.run();
