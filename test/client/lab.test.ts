import { spawnSync } from "node:child_process";
import {
  closeSync,
  constants,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { readArrays } from "../../src/client/arrays.js";
import { Lab, TaplineError, TimeoutError } from "../../src/client/index.js";
import { writeWhole } from "../../src/client/whole-file.js";
import { npyFile, zipOf } from "../support/npz-bytes.js";
import { saying } from "../support/saying.js";
import { scripted, sendJson } from "./scripted.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-client-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const id = "0123456789abcdef0123456789abcdef";

async function rejection(promise: Promise<unknown>): Promise<Error & { status?: number }> {
  return promise.then(
    () => {
      throw new Error("It should have been refused.");
    },
    (error) => error,
  );
}

test("a submission contains exactly the given fields, and no browser headers", async () => {
  const service = await scripted((_request, response) => sendJson(response, 202, { id, status: "queued" }));
  const lab = new Lab(service.url);
  await lab.inspect("demo", "Hello", { layers: [1, 2] });
  await lab.compare("demo", "Hello", { intervention: "ablate", strengths: [0, 1] });
  await lab.probe("demo", [{ text: "a", label: 1, split: "train" }], { seed: 3 });
  await lab.sae("demo", [{ text: "a", split: "test" }], { features: 16 });
  await service.close();
  assert.equal(
    service.seen.map(({ body }) => JSON.parse(body)),
    [
      { operation: "inspect", model: "demo", prompt: "Hello", layers: [1, 2] },
      { operation: "compare", model: "demo", prompt: "Hello", intervention: "ablate", strengths: [0, 1] },
      { operation: "probe", model: "demo", examples: [{ text: "a", label: 1, split: "train" }], seed: 3 },
      { operation: "sae", model: "demo", examples: [{ text: "a", split: "test" }], features: 16 },
    ],
  );
  for (const { method, path, headers } of service.seen) {
    assert.is(`${method} ${path}`, "POST /lab/v1/jobs");
    assert.is(headers["content-type"], "application/json");
    assert.not(Object.keys(headers).some((name) => /^(origin|cookie|sec-fetch-.*)$/.test(name)));
  }
});

test("dictionaries are listed, looked at, added and forgotten by their names", async () => {
  const kept = { name: "a b/c" };
  const service = await scripted(({ path }, response) =>
    sendJson(response, 200, path === "/lab/dictionaries" ? { dictionaries: [kept] } : kept),
  );
  const lab = new Lab(service.url);
  assert.equal(await lab.dictionaries(), [kept]);
  assert.equal(await lab.dictionary("a b/c"), kept);
  assert.equal(await lab.addDictionary("a b/c", "owner/name/folder", { layer: 3 }), kept);
  assert.is(await lab.removeDictionary("a b/c"), undefined);
  await service.close();
  assert.equal(
    service.seen.map(({ method, path, body }) => [method, path, body === "" ? null : JSON.parse(body)]),
    [
      ["GET", "/lab/dictionaries", null],
      ["GET", "/lab/dictionaries/a%20b%2Fc", null],
      ["PUT", "/lab/dictionaries/a%20b%2Fc", { from: "owner/name/folder", layer: 3 }],
      ["DELETE", "/lab/dictionaries/a%20b%2Fc", null],
    ],
  );
});

test("lenses as well; each job can be read, and its arrays by type", async () => {
  const kept = { name: "a b" };
  const service = await scripted(({ path }, response) =>
    sendJson(response, 200, path === "/lab/lenses" ? { lenses: [kept] } : kept),
  );
  const lab = new Lab(service.url);
  assert.equal(await lab.lenses(), [kept]);
  assert.equal(await lab.lens("a b"), kept);
  assert.equal(await lab.addLens("a b", "demo", { revision: "main" }), kept);
  assert.is(await lab.removeLens("a b"), undefined);
  await lab.schema();
  await lab.cancel(id);
  const [clean, corrupted] = ["The [[cat]]", "The [[dog]]"];
  await lab.patchSweep("demo", clean, corrupted, { seed: 1 });
  await lab.features("demo", "gemma", ["x"], { seed: 2 });
  await lab.drift("demo", "other", [{ text: "a" }]);
  await lab.extract("demo", { data: "/a.txt" });
  await lab.explain("demo", "a", { layer: 3, template: "What is X?", marker: "X", length: 5 });
  await lab.graph("demo", "a", { nodes: 7 });
  await service.close();
  assert.equal(
    service.seen.map(({ method, path, body }) => [method, path, body === "" ? null : JSON.parse(body)]),
    [
      ["GET", "/lab/lenses", null],
      ["GET", "/lab/lenses/a%20b", null],
      ["PUT", "/lab/lenses/a%20b", { from: "demo", revision: "main" }],
      ["DELETE", "/lab/lenses/a%20b", null],
      ["GET", "/lab/v1/openapi.json", null],
      ["POST", `/lab/v1/jobs/${id}/cancel`, {}],
      ["POST", "/lab/v1/jobs", { operation: "patch_sweep", model: "demo", clean, corrupted, seed: 1 }],
      [
        "POST",
        "/lab/v1/jobs",
        { operation: "features", model: "demo", dictionary: "gemma", texts: ["x"], seed: 2 },
      ],
      [
        "POST",
        "/lab/v1/jobs",
        { operation: "drift", model: "demo", other: "other", examples: [{ text: "a" }] },
      ],
      ["POST", "/lab/v1/jobs", { operation: "extract", model: "demo", data: "/a.txt" }],
      [
        "POST",
        "/lab/v1/jobs",
        {
          ...{ operation: "explain", model: "demo", prompt: "a", layer: 3 },
          ...{ template: "What is X?", marker: "X", length: 5 },
        },
      ],
      ["POST", "/lab/v1/jobs", { operation: "graph", model: "demo", prompt: "a", nodes: 7 }],
    ],
  );
});

test("arrays of float32, float64 and int32 are read in either order, others refused", () => {
  const npy = (descr: string, numbers: Uint8Array, shape = "(2,)", fortran = false) => {
    const text = `{'descr': '${descr}', 'fortran_order': ${fortran ? "True" : "False"}, 'shape': ${shape}, }`;
    const head = Buffer.from(`${text.padEnd(117)}\n`);
    return Buffer.concat([Buffer.from("\x93NUMPY\x01\x00\x76\x00", "latin1"), head, numbers]);
  };
  const bytes = (numbers: Float32Array | Float64Array | Int32Array | Uint8Array) =>
    new Uint8Array(numbers.buffer);
  const numbersOf = (file: Buffer) => [...(readArrays(zipOf({ x: file })).get("x")?.data ?? [])];
  assert.equal(numbersOf(npy("<f4", bytes(Float32Array.of(0.5, -1)))), [0.5, -1]);
  assert.equal(numbersOf(npy("<f8", bytes(Float64Array.of(0.1, -1)))), [0.1, -1]);
  assert.equal(numbersOf(npy("<i4", bytes(Int32Array.of(7, -1)))), [7, -1]);
  // NumPy's [[1, 2, 3], [4, 5, 6]] in Fortran order: column by column.
  const columns = npy("<f4", bytes(Float32Array.of(1, 4, 2, 5, 3, 6)), "(2, 3)", true);
  assert.equal(numbersOf(columns), [1, 2, 3, 4, 5, 6]);
  assert.throws(
    () => numbersOf(npy("|u1", bytes(Uint8Array.of(1, 2)))),
    saying("x has an unsupported type: only float32, float64 and int32 are supported."),
  );
});

test("a refusal becomes the library's error, with the service's sentence and status", async () => {
  const service = await scripted((_request, response) =>
    sendJson(response, 409, { error: "A job is running." }),
  );
  const error = await rejection(new Lab(service.url).inspect("demo", "Hello"));
  await service.close();
  assert.instance(error, TaplineError);
  assert.is(error.message, "A job is running.");
  assert.is(error.status, 409);
});

test("arrays of an artifact have NumPy's shapes and numbers", async () => {
  const npz = zipOf({
    layer_3: npyFile(Float32Array.of(0.5, -1, 2, 3, 4, 5), [1, 2, 3]),
    counts: npyFile(Float32Array.of(0.25, 7), [2]),
  });
  const service = await scripted(({ path }, response) => {
    if (path.endsWith("/activations.npz")) response.end(npz);
    else if (path.endsWith("/cut.npz")) response.end(npz.subarray(0, 100));
    else sendJson(response, 404, { error: "The job has no such artifact." });
  });
  const lab = new Lab(service.url);
  const arrays = await lab.arrays("a/b", "activations.npz");
  const cut = await rejection(lab.arrays(id, "cut.npz"));
  const missing = await rejection(lab.arrays(id, "in/none.npz"));
  await service.close();
  assert.is(service.seen[0]?.path, "/lab/v1/jobs/a%2Fb/artifacts/activations.npz");
  assert.is(service.seen[2]?.path, `/lab/v1/jobs/${id}/artifacts/in%2Fnone.npz`);
  assert.equal([...arrays.keys()], ["layer_3", "counts"]);
  const layer = arrays.get("layer_3")!;
  assert.equal(layer.shape, [1, 2, 3]);
  assert.equal([layer.get(0, 0, 1), layer.get(0, 1, 2)], [-1, 5]);
  assert.is(arrays.get("counts")!.get(0), 0.25);
  assert.instance(cut, TaplineError);
  assert.match(cut.message, /npz/);
  assert.is(missing.message, "The job has no such artifact.");
});

test("a refusal without a sentence still names the request and the status", async () => {
  const service = await scripted((_request, response) => response.writeHead(502).end("<html>"));
  const error = await rejection(new Lab(service.url).health());
  await service.close();
  assert.is(error.message, "/lab/v1/health returned status 502.");
});

test("success has a status from 200 to 299", async () => {
  let status = 200;
  const service = await scripted((_request, response) => response.writeHead(status).end("{}"));
  const lab = new Lab(service.url);
  for (status of [200, 299]) assert.equal(await lab.health(), {});
  for (status of [300, 400]) assert.is((await rejection(lab.health())).status, status);
  await service.close();
});

test("an answer that is not JSON, or that breaks off, is the library's error", async () => {
  const service = await scripted(({ path }, response) => {
    if (path.endsWith("health")) response.end("not json");
    else {
      response.writeHead(200, { "Content-Length": 100 });
      response.write("{");
      setTimeout(() => response.destroy(), 20);
    }
  });
  const lab = new Lab(service.url);
  assert.match((await rejection(lab.health())).message, /is not JSON/);
  const broken = await rejection(lab.jobs());
  await service.close();
  assert.instance(broken, TaplineError);
  assert.match(broken.message, /^The connection to http:\/\/127\.0\.0\.1:\d+ broke/);
});

test("a service that is not there", async () => {
  const service = await scripted(() => {});
  await service.close();
  const error = await rejection(new Lab(service.url).health());
  assert.instance(error, TaplineError);
  assert.is(
    error.message,
    `Nothing listens at ${service.url}; start it with tapline lab --port ${new URL(service.url).port}.`,
  );
  // Another machine's is started there, however that is done.
  const elsewhere = await rejection(new Lab("http://127.0.0.2:1").health());
  assert.is(elsewhere.message, "Nothing listens at http://127.0.0.2:1; is the service running?");
});

test("silence ends in a TimeoutError, before the answer and in the middle of it", async () => {
  const service = await scripted(({ path }, response) => {
    if (!path.endsWith("health")) response.writeHead(200).write("{");
  });
  const lab = new Lab(service.url, { timeoutMs: 60 });
  assert.instance(await rejection(lab.health()), TimeoutError);
  assert.instance(await rejection(lab.jobs()), TimeoutError);
  await service.close();
});

test("refuses addresses with a path, another scheme or no host immediately", () => {
  for (const address of [
    "http://127.0.0.1:8980/lab/v1",
    "http://127.0.0.1:8980/?x=1",
    "http://me@127.0.0.1:8980",
    "https://127.0.0.1:8980",
    "127.0.0.1:8980",
    "",
  ]) {
    assert.throws(
      () => new Lab(address),
      (error: Error) => error instanceof TaplineError,
    );
  }
});

test("aborting rejects with the signal's reason and lets the connection go", async () => {
  let dropped = () => {};
  const gone = new Promise<void>((resolve) => {
    dropped = resolve;
  });
  const service = await scripted((_request, response) => void response.once("close", dropped));
  const reason = new Error("The user went away.");
  const stop = new AbortController();
  const call = rejection(new Lab(service.url).health({ signal: stop.signal }));
  setTimeout(() => stop.abort(reason), 30);
  assert.is(await call, reason);
  await gone;
  assert.is(await rejection(new Lab(service.url).health({ signal: AbortSignal.abort(reason) })), reason);
  await service.close();
});

test("waiting polls until the job is done, and reports its progress", async () => {
  const states = ["queued", "running", "running", "completed"];
  const service = await scripted((_request, response) =>
    sendJson(response, 200, { id, operation: "inspect", status: states.shift(), result: { tokens: ["a"] } }),
  );
  const looks: string[] = [];
  const job = await new Lab(service.url).wait(id, {
    intervalMs: 1,
    onProgress: ({ status }) => looks.push(status),
  });
  await service.close();
  assert.is(job.status, "completed");
  assert.equal(looks, ["queued", "running", "running", "completed"]);
});

test("waiting for a failed job raises with the job's message", async () => {
  const bodies = [
    { id, status: "failed", error: "The model has layers 0 to 7, got 9." },
    { id, status: "cancelled" },
    { id, status: "interrupted" },
  ];
  const service = await scripted((_request, response) => sendJson(response, 200, bodies.shift()));
  const lab = new Lab(service.url);
  const errors = [
    await rejection(lab.wait(id)),
    await rejection(lab.wait(id)),
    await rejection(lab.wait(id)),
  ];
  await service.close();
  for (const error of errors) assert.instance(error, TaplineError);
  assert.equal(
    errors.map(({ message }) => message),
    ["The model has layers 0 to 7, got 9.", `Job ${id} was cancelled.`, `Job ${id} was interrupted.`],
  );
});

test("waiting ends on its deadline without cancelling the job", async () => {
  const service = await scripted((_request, response) => sendJson(response, 200, { id, status: "running" }));
  // As often as the machine needs to look twice within its time.
  for (let timeoutMs = 60, seen = 0; seen < 2; timeoutMs *= 2) {
    service.seen.length = 0;
    const error = await rejection(new Lab(service.url).wait(id, { timeoutMs, intervalMs: 10 }));
    assert.instance(error, TimeoutError);
    seen = service.seen.length;
  }
  await service.close();
  assert.ok(service.seen.every(({ method }) => method === "GET"));
});

test("waiting can be aborted between two looks", async () => {
  const service = await scripted((_request, response) => sendJson(response, 200, { id, status: "running" }));
  const stop = new AbortController();
  const reason = new Error("enough");
  const call = rejection(
    new Lab(service.url).wait(id, {
      intervalMs: 60_000,
      signal: stop.signal,
      onProgress: () => void setTimeout(() => stop.abort(reason), 20),
    }),
  );
  assert.is(await call, reason);
  await service.close();
});

test("an artifact replaces the former file, in one step", async () => {
  const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251));
  const service = await scripted((_request, response) => response.end(bytes));
  const destination = join(folder, "activations.npz");
  writeFileSync(destination, "old");
  assert.is(await new Lab(service.url).artifact(id, "activations.npz", destination), destination);
  await service.close();
  assert.ok(readFileSync(destination).equals(bytes));
  assert.equal(
    readdirSync(folder).filter((name) => name.startsWith("activations")),
    ["activations.npz"],
  );
  assert.is(service.seen[0]!.path, `/lab/v1/jobs/${id}/artifacts/activations.npz`);
});

/** Makes a special file in a separate folder; undefined if that is not permitted, or such files cannot be opened. */
function special(...words: string[]): string | undefined {
  const path = join(mkdtempSync(join(folder, "special-")), "there");
  if (spawnSync("mknod", [path, ...words]).status !== 0) return undefined;
  try {
    closeSync(openSync(path, constants.O_RDWR | constants.O_NONBLOCK));
    return path;
  } catch {
    return undefined; // a disk without devices
  }
}

const pipe = special("p");
(pipe === undefined ? test.skip : test)("a named pipe is written to and stays one", async () => {
  // Open for reading and writing, so that neither side waits for the other.
  const reader = openSync(pipe as string, constants.O_RDWR | constants.O_NONBLOCK);
  try {
    await writeWhole(pipe as string, [Buffer.from("some "), Buffer.from("bytes")]);
    const read = Buffer.alloc(100);
    assert.is(read.subarray(0, readSync(reader, read)).toString(), "some bytes");
  } finally {
    closeSync(reader);
  }
  assert.ok(lstatSync(pipe as string).isFIFO());
  assert.equal(readdirSync(dirname(pipe as string)), ["there"]);
});

// Major 1, minor 7: Linux's device that is always full.
const full = process.platform === "linux" ? special("c", "1", "7") : undefined;
(full === undefined ? test.skip : test)("a device is not replaced; its error is reported", async () => {
  const error = await rejection(writeWhole(full as string, [Buffer.from("some bytes")]));
  assert.is((error as NodeJS.ErrnoException).code, "ENOSPC");
  assert.ok(lstatSync(full as string).isCharacterDevice());
  assert.equal(readdirSync(dirname(full as string)), ["there"]);
});

test("a failed or aborted download leaves the old file and no other", async () => {
  const service = await scripted(({ path }, response) => {
    response.writeHead(200, { "Content-Length": 1000 }).write("half");
    if (path.endsWith("breaks")) setTimeout(() => response.destroy(), 20);
  });
  const lab = new Lab(service.url);
  const destination = join(folder, "kept");
  writeFileSync(destination, "old");
  assert.instance(await rejection(lab.artifact(id, "breaks", destination)), TaplineError);
  const stop = new AbortController();
  setTimeout(() => stop.abort(new Error("enough")), 50);
  const error = await rejection(lab.artifact(id, "hangs", destination, { signal: stop.signal }));
  assert.is(error.message, "enough");
  await service.close();
  assert.is(readFileSync(destination, "utf8"), "old");
  assert.equal(
    readdirSync(folder).filter((name) => name.endsWith(".part")),
    [],
  );
});

test.run();
