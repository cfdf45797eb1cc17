/** Behaviour with a failing or odd hub: the pauses (none of them is waited here) and the messages. */
import dns from "node:dns/promises";
import promises, { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { homedir, hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { UserError } from "../../src/contracts/user-error.js";
import { canonicalJson } from "../../src/formats/canonical-json.js";
import { CachedRepository } from "../../src/models/hub/cache.js";
import { listCached, removeCached } from "../../src/models/hub/cached.js";
import { downloadFile } from "../../src/models/hub/download.js";
import { answerFault } from "../../src/models/hub/fault.js";
import { parseHubPlace } from "../../src/models/hub/id.js";
import { resolveHubPlace } from "../../src/models/hub/index.js";
import { isHeld, underLock } from "../../src/models/hub/lock.js";
import { hubOffers } from "../../src/models/hub/offers.js";
import { Repository } from "../../src/models/hub/repository.js";
import { hubSettings } from "../../src/models/hub/settings.js";
import { StreamSource } from "../../src/models/hub/stream-source.js";
import { provenance } from "../../src/models/provenance.js";
import { resolveModel } from "../../src/models/resolve.js";
import { awaitRpcServers, reachRpcServers } from "../../src/models/rpc.js";
import { watchOpenFiles } from "../support/open-files.js";
import { until } from "../support/until.js";
import { askingTooLate, withFiles } from "../support/with-files.js";
import { standIn, withTime } from "../support/with-time.js";
import { mainCommit, sha256, TestHub } from "./support/hub.js";

const content = Buffer.from(`GGUF${"x".repeat(3000)}`);
const saved = { ...process.env };
let hub: TestHub;
let home: string;
/** Milliseconds of each wait that was asked for. */
let waits: number[];
let putBack = () => {};

test.before.each(async () => {
  hub = await TestHub.open();
  hub.repositories["a/b"] = { files: { "m.gguf": content } };
  home = await mkdtemp(join(tmpdir(), "tapline-faults-"));
  process.env = { ...saved, HF_ENDPOINT: hub.url, HF_HOME: home };
  for (const name of ["HF_HUB_CACHE", "HF_TOKEN", "HF_HUB_OFFLINE"]) delete process.env[name];
  waits = [];
  putBack = standIn({ "timers.setTimeout": async (ms) => void waits.push(ms) });
});
test.after.each(async () => {
  putBack();
  process.env = saved;
  await hub.close();
  await rm(home, { recursive: true });
});

const refusal = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "none",
    (error: Error) => `${error.name}: ${error.message}`,
  );
const blobs = () => join(home, "hub", "models--a--b", "blobs");

test("a failing hub is tried three times, with doubled or requested pauses", async () => {
  let answers: [number, string?][] = [];
  hub.faults.status = () => {
    const [status, after] = answers.shift() ?? [500];
    return { status, ...(after !== undefined && { headers: { "Retry-After": after } }) };
  };
  assert.match(
    await refusal(resolveModel("a/b")),
    /^UserError: .* answered 500 for a\/b; try again later\.$/,
  );
  assert.equal([waits, hub.requests.length], [[500, 1000], 3]);
  waits = [];
  // It may name seconds; none, a date or no number count for nothing, and more than a minute for a minute.
  answers = [
    [503, "7"],
    [429, "86400"],
    [408, "0"],
  ];
  assert.match(await refusal(resolveModel("a/b")), / answered 408 for a\/b/);
  assert.equal(waits, [7000, 60_000]);
  waits = [];
  answers = [
    [500, "-3"],
    [500, "Wed, 21 Oct 2015 07:28:00 GMT"],
    [429, "1"],
  ];
  assert.match(await refusal(resolveModel("a/b")), /Too many requests to .*; try again in a few/);
  assert.equal(waits, [500, 1000]);
  waits = [];
  // What will not be another answer is no reason to ask again.
  answers = [[418]];
  assert.match(await refusal(resolveModel("a/b")), / answered 418 for a\/b/);
  assert.equal(waits, []);
});

test("a download gives up after six attempts in a row bring nothing", async () => {
  hub.faults.status = (path) => (path.includes(sha256(content)) ? { status: 503 } : undefined);
  assert.match(
    await refusal(resolveModel("a/b")),
    /^UserError: .* answered 503 for m\.gguf; try again later\.$/,
  );
  assert.equal(waits, [500, 1000, 2000, 4000, 8000]);
  waits = [];
  // A connection that brings some, and breaks, is opened again at once.
  const cuts = [1000, 0, 500, 0, 0];
  hub.faults = { cutAfter: () => cuts.shift() };
  const { path } = await resolveModel("a/b");
  assert.equal(waits, [0, 500, 0, 500, 1000]);
  assert.ok(content.equals(await readFile(path)));
});

test("a file's description is read and released", async () => {
  await mkdir(blobs(), { recursive: true });
  const partial = join(blobs(), `${sha256(content)}.tapline.incomplete`);
  await writeFile(partial, content.subarray(0, 1000));
  const files = watchOpenFiles();
  await resolveModel("a/b").finally(files.stop);
  assert.equal([files.opened.length > 0, files.left], [true, []]);
  assert.equal(
    hub.downloads.map(({ range }) => range),
    [`bytes=1000-${content.length - 1}`],
  );
});

test("which answers of a hub may pass, and whose fault a 401 is", async () => {
  const settings = await hubSettings();
  const fault = (status: number, headers: Record<string, string> = {}, token?: string) =>
    answerFault({ ...settings, token }, { repository: "a/b" }, new Response(null, { status, headers }));
  const passing = [400, 403, 404, 408, 410, 429, 500, 502, 503].filter((status) => fault(status).passing);
  assert.equal(passing, [408, 429, 500, 502, 503]);
  const { host } = new URL(settings.endpoint);
  const none = `a/b is neither a local file nor a repository on ${host}`;
  const unknown = { "x-error-code": "RepoNotFound" };
  assert.is(fault(401, unknown).message, `${none} (private repositories require a token in HF_TOKEN).`);
  assert.is(fault(401, unknown, "t").message, `${none}.`);
  assert.is(fault(401, {}, "t").message, `${host} rejected the token (HF_TOKEN); it may have expired.`);
});

test("missing disk space is reported before any request", async () => {
  const withFree = async (bytes: number) => {
    await rm(join(home, "hub"), { recursive: true, force: true });
    await mkdir(blobs(), { recursive: true });
    await writeFile(join(blobs(), `${sha256(content)}.tapline.incomplete`), content.subarray(0, 1000));
    hub.requests.length = 0;
    const statfs = (async () => ({ bavail: bytes, bsize: 1 })) as never;
    return withFiles({ statfs }, () => refusal(resolveModel("a/b")));
  };
  assert.is(await withFree(content.length - 1000), "none");
  assert.match(await withFree(content.length - 1001), /^UserError: .*m\.gguf/);
  assert.is(hub.downloads.length, 0);
});

test("a whole model and an incomplete one of a repository are removed together", async () => {
  await resolveModel("a/b");
  await writeFile(join(blobs(), `${"0".repeat(64)}.tapline.incomplete`), "GGUF");
  assert.equal(await removeCached("a/b"), {
    removed: ["a/b/m.gguf", "an unfinished download"],
    freed: content.length + 4,
  });
  assert.match(await refusal(removeCached("a/b")), /^UserError: a\/b is not in the cache /);
});

test("hub addresses are recognised, and others are not", async () => {
  assert.equal(parseHubPlace("a/b.c"), { repository: "a/b.c", path: "" });
  assert.equal(parseHubPlace("a/b/"), { repository: "a/b", path: "" });
  assert.equal(parseHubPlace("a/b/c/d.json"), { repository: "a/b", path: "c/d.json" });
  for (const text of [
    "",
    "a",
    "a/",
    "/a/b",
    "./a/b",
    "a--b/c",
    "a/b--c",
    "a/b..c",
    "a/b/../c",
    "a/b//c",
    "a/b/c d",
  ]) {
    assert.is(parseHubPlace(text), undefined, text);
  }
});

test("a hub that sends too many bytes is reported, and nothing is stored", async () => {
  async function* read() {
    yield content.subarray(0, 2000);
    yield Buffer.concat([content.subarray(2000), Buffer.from("y")]);
  }
  const file = { path: "m.gguf", size: content.length, hash: sha256(content), algorithm: "sha256" } as const;
  const cached = new CachedRepository(home, "a/b");
  const repository = { host: "hub.example", read } as unknown as Repository;
  assert.is(
    await refusal(downloadFile(repository, cached, file, { onBytes: () => {} })),
    "UserError: hub.example sent more than the 3004 bytes of m.gguf.",
  );
  assert.is((await stat(cached.incomplete(file.hash))).size, 2000);
});

test("files of zero bytes and one byte count as missing before their download", async () => {
  for (const content of [Buffer.alloc(0), Buffer.from("1")]) {
    const name = `${content.length}.json`;
    hub.repositories["a/short"] = { files: { [name]: content } };
    const received: [number, number][] = [];
    // The second time it is here, and nothing is asked for.
    for (const times of [1, 2]) {
      const found = await resolveHubPlace("a/short", () => [name], {
        onDownload: ({ done, received: came }) => received.push([done, came]),
      });
      assert.equal([times, await readFile(found!.path)], [times, content]);
    }
    assert.equal(received.at(-1), [content.length, 0]);
  }
});

test("a split model's size and parameters are the sums of its parts", async () => {
  const part = (count: number, parameters: number, bytes: number) => {
    const number = (value: number, size: number) => {
      const buffer = Buffer.alloc(size);
      buffer.writeUIntLE(value, 0, Math.min(size, 6));
      return buffer;
    };
    const word = (text: string) => Buffer.concat([number(text.length, 8), Buffer.from(text)]);
    const tensors = Array.from({ length: count }, (_, index) =>
      // One dimension of the given number of 32-bit floats.
      Buffer.concat([word(`t${index}`), number(1, 4), number(parameters, 8), number(0, 4), number(0, 8)]),
    );
    const pair = [word("general.architecture"), number(8, 4), word("tiny")];
    const head = [Buffer.from("GGUF"), number(3, 4), number(count, 8), number(1, 8), ...pair, ...tensors];
    return Buffer.concat([...head, Buffer.alloc(bytes)]).subarray(0, bytes);
  };
  hub.repositories["a/parts"] = {
    files: {
      "x-00001-of-00002.gguf": part(2, 32, 1000),
      "x-00002-of-00002.gguf": part(1, 100, 1500),
    },
  };
  await resolveModel("a/parts");
  const { models } = await listCached();
  assert.equal(
    models.map(({ id, bytes, header }) => [id, bytes, header?.architecture, header?.parameters]),
    [["a/parts/x-00001-of-00002.gguf", 2500, "tiny", 164]],
  );
});

test("vanished files free nothing, and folders by other tools may be absent", async () => {
  const { path } = await resolveModel("a/b");
  await rm(join(home, "hub", ".locks"), { recursive: true });
  const { rm: remove } = promises;
  const further: typeof remove = async (each, options) => {
    await remove(each, options);
    if (each === path) await remove(join(blobs(), sha256(content)));
  };
  assert.equal(await withFiles({ rm: further }, () => removeCached("a/b")), {
    removed: ["a/b/m.gguf"],
    freed: 0,
  });
  assert.equal(await readdir(join(home, "hub")), []);
});

test("files that vanish while the cache is read are skipped", async () => {
  const { path } = await resolveModel("a/b");
  const blob = join(blobs(), sha256(content));
  const partial = join(blobs(), `${"0".repeat(64)}.tapline.incomplete`);
  const { stat, realpath } = promises;
  /** The list's entry for a file that another process deletes just before it is read. */
  const listedWithout = async (gone: string) => {
    const { models, unfinished } = await withFiles(
      // The link is followed by one, what it leads to is asked of the other.
      gone === path ? { realpath: askingTooLate(gone, realpath) } : { stat: askingTooLate(gone, stat) },
      listCached,
    );
    return [models.map(({ id }) => id), unfinished.map(({ bytes }) => bytes)];
  };
  await writeFile(partial, "GGUF");
  assert.equal(await listedWithout(join(home, "nothing")), [["a/b/m.gguf"], [4]]);
  assert.equal(await listedWithout(partial), [["a/b/m.gguf"], []]);
  await writeFile(partial, "GGUF");
  assert.equal(await listedWithout(blob), [[], [4]]);
  await resolveModel("a/b");
  assert.equal(await listedWithout(path), [[], [4]]);
});

test("of two processes that remove a model together, neither fails", async () => {
  const { path } = await resolveModel("a/b");
  const { realpath } = promises;
  let asked = 0;
  const other = (async (each: string) => {
    // First the list asks where it leads; then it is about to be removed.
    asked += each === path ? 1 : 0;
    if (asked === 2) await rm(path, { force: true });
    return realpath(each);
  }) as never;
  const { removed } = await withFiles({ realpath: other }, () => removeCached("a/b"));
  assert.equal([asked, removed], [2, ["a/b/m.gguf"]]);
});

test("a wait for a lock names its holder every five seconds", async () => {
  const path = join(home, "locks", "lock");
  const { setInterval: each, clearInterval: end } = globalThis;
  const begun: unknown[] = [];
  const ended: unknown[] = [];
  let beat = () => {};
  let every = 0;
  const noted = (run: () => void, ms: number) => {
    [beat, every] = [run, ms];
    begun.push(each(() => {}, 1e6));
    return begun.at(-1);
  };
  const forgotten = (timer: NodeJS.Timeout) => {
    ended.push(timer);
    end(timer);
  };
  await withTime({ setInterval: noted, clearInterval: forgotten }, () =>
    underLock(
      path,
      async () => {
        const before = new Date(Date.now() - 50_000);
        await utimes(path, before, before);
        beat();
        await until(async () => (await stat(path)).mtimeMs > before.getTime() + 10_000);
      },
      async () => assert.unreachable("nobody else holds it") as never,
    ),
  );
  assert.is(every, 5000);
  assert.is(begun.length, 1);
  assert.ok(ended.includes(begun[0]), "and no more after its release");
  assert.equal(await readdir(join(home, "locks")), []);
});

test("a repository's models: the smallest first, parts together", async () => {
  hub.repositories["a/many"] = {
    files: {
      "x-Q8_0.gguf": Buffer.alloc(400),
      "x-F16-00001-of-00002.gguf": Buffer.alloc(300),
      "x-F16-00002-of-00002.gguf": Buffer.alloc(500),
      "x-Q4_K_M.gguf": Buffer.alloc(200),
      "mmproj-x.gguf": Buffer.alloc(1),
    },
  };
  const offer = (file: string, parts: number, bytes: number) => ({
    id: `a/many/${file}`,
    file,
    parts,
    bytes,
  });
  assert.equal(await hubOffers("a/many:Q8_0"), {
    repository: "a/many",
    offers: [
      offer("x-Q4_K_M.gguf", 1, 200),
      offer("x-Q8_0.gguf", 1, 400),
      offer("x-F16-00001-of-00002.gguf", 2, 800),
    ],
  });
});

test("settings: each variable before the one that is more general", async () => {
  const of = (env: Record<string, string>) => hubSettings({ HF_TOKEN: "t", ...env });
  const cache = async (env: Record<string, string>) => (await of(env)).cache;
  assert.is(await cache({}), join(homedir(), ".cache", "huggingface", "hub"));
  assert.is(await cache({ XDG_CACHE_HOME: "/x" }), "/x/huggingface/hub");
  assert.is(await cache({ XDG_CACHE_HOME: "/x", HF_HOME: "~/h" }), join(homedir(), "h", "hub"));
  assert.is(await cache({ HF_HOME: "/h", HUGGINGFACE_HUB_CACHE: "/c" }), "/c");
  assert.is(await cache({ HUGGINGFACE_HUB_CACHE: "/c", HF_HUB_CACHE: "~" }), homedir());
  const { endpoint, idleMs, offline, token } = await of({});
  assert.equal([endpoint, idleMs, offline, token], ["https://huggingface.co", 30_000, false, "t"]);
  assert.is((await of({ HF_ENDPOINT: "http://h:1/mirror//" })).endpoint, "http://h:1/mirror");
  assert.is((await of({ HF_HUB_DOWNLOAD_TIMEOUT: "2.5" })).idleMs, 2500);
  for (const on of ["1", "ON", "yes", "True"]) {
    assert.ok((await of({ HF_HUB_OFFLINE: on })).offline, on);
    assert.ok((await of({ TRANSFORMERS_OFFLINE: on })).offline, on);
  }
  for (const off of ["", "0", "11", "no"]) assert.not((await of({ HF_HUB_OFFLINE: off })).offline, off);
  const path = join(home, "elsewhere");
  await writeFile(path, " kept \n");
  assert.is((await hubSettings({ HF_HOME: home, HF_TOKEN_PATH: path })).token, "kept");
  assert.is((await hubSettings({ HF_TOKEN_PATH: path, HUGGING_FACE_HUB_TOKEN: "old" })).token, "old");
  assert.is((await hubSettings({ HF_HOME: home })).token, undefined);
});

test("a lock is held by a live or remote process, at most a silent minute", async () => {
  const path = join(home, "lock");
  const held = async (text: string, age = 0) => {
    await writeFile(path, text);
    const then = new Date(Date.now() - age * 1000);
    await utimes(path, then, then);
    return isHeld(path);
  };
  const own = (pid: number) => JSON.stringify({ pid, host: hostname() });
  // No system counts so far.
  const nobody = 2 ** 30;
  const elsewhere = JSON.stringify({ pid: nobody, host: `${hostname()}-other` });
  assert.not(await isHeld(path));
  assert.ok(await held(own(process.pid)));
  assert.not(await held(own(nobody)));
  assert.ok(await held(elsewhere));
  assert.ok(await held(elsewhere, 50));
  assert.not(await held(elsewhere, 70));
  assert.not(await held(own(process.pid), 70));
  assert.not(await held("no JSON"));
});

/** A server that describes one repository with these files. */
async function describing(files: unknown[], use: (url: string) => Promise<void>): Promise<void> {
  const server: Server = createServer((request, response) => {
    const tree = (request.url ?? "").includes("/tree/");
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify(tree ? files : { _id: "0", id: "a/b", sha: mainCommit }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("a file's description is checked: safe path, hash length, size", async () => {
  const plain = { type: "file", path: "m.gguf", size: 5, oid: "a".repeat(40) };
  const large = { ...plain, lfs: { oid: "b".repeat(64), size: 7, pointerSize: 1 } };
  const opened = (entry: object) =>
    new Promise<unknown>((resolve) => {
      void describing([entry], async (endpoint) => {
        const settings = { endpoint, cache: home, token: undefined, offline: false, idleMs: 1000 };
        await Repository.open(settings, "a/b", "main").then(
          ({ files }) => resolve(files),
          (error: Error) => resolve(error.message),
        );
      });
    });
  assert.equal(await opened(plain), [
    { path: "m.gguf", size: 5, hash: "a".repeat(40), algorithm: "git-sha1" },
  ]);
  assert.equal(await opened(large), [{ path: "m.gguf", size: 7, hash: "b".repeat(64), algorithm: "sha256" }]);
  assert.equal(await opened({ ...plain, size: 0 }), [
    { path: "m.gguf", size: 0, hash: "a".repeat(40), algorithm: "git-sha1" },
  ]);
  for (const odd of [
    { ...plain, path: "../m.gguf" },
    { ...plain, oid: "a".repeat(64) },
    { ...plain, oid: undefined },
    { ...plain, size: -1 },
    { ...plain, size: 1.5 },
    { ...large, lfs: { ...large.lfs, oid: "b".repeat(40) } },
    { ...large, lfs: { ...large.lfs, size: -7 } },
  ]) {
    assert.match(
      String(await opened(odd)),
      /returned an unexpected description of a\/b\.$/,
      JSON.stringify(odd),
    );
  }
  assert.equal(waits, []);
});

test("a stream is read only as far as needed, and its end ends the source", async () => {
  const taken: number[] = [];
  let ended = false;
  async function* bytes() {
    try {
      for (let at = 0; at < 5; at++) {
        taken.push(at);
        yield Uint8Array.of(2 * at, 2 * at + 1);
      }
    } finally {
      ended = true;
    }
  }
  const source = new StreamSource(bytes(), 10);
  const read = async (length: number, position: number) => {
    const buffer = Buffer.alloc(length);
    return [...buffer.subarray(0, await source.read(buffer, position))];
  };
  assert.equal(
    [await read(2, 1), taken],
    [
      [1, 2],
      [0, 1],
    ],
  );
  assert.equal(
    [await read(4, 0), taken],
    [
      [0, 1, 2, 3],
      [0, 1],
    ],
  );
  assert.equal([await read(3, 5), taken.length], [[5, 6, 7], 4]);
  await source.close();
  assert.ok(ended);
  // Unread data are missing.
  assert.equal(await read(4, 6), [6, 7]);
});

test("an rpc-server is looked for by the addresses that llama.cpp takes, of IPv4", async () => {
  const { lookup } = dns;
  const asked: unknown[] = [];
  dns.lookup = (async (host: string, { family }: { family: number }) => {
    asked.push([host, family]);
    throw new Error("ENOTFOUND");
  }) as never;
  syncBuiltinESMExports();
  const error = await reachRpcServers([{ host: "there", port: 1 }])
    .catch((error: Error) => error)
    .finally(() => {
      dns.lookup = lookup;
      syncBuiltinESMExports();
    });
  assert.equal(asked, [["there", 4]]);
  assert.is((error as Error).message, "The rpc-server there:1 does not resolve to an address.");
});

test("a server that can never be reached is not waited for", async () => {
  const waited: string[] = [];
  const port = 70_000;
  const error = await awaitRpcServers([{ host: "127.0.0.1", port }], (sentence) => {
    waited.push(sentence);
    throw new Error("It waits.");
  }).catch((error: Error) => error);
  assert.instance(error, RangeError);
  assert.not.instance(error, UserError);
  assert.equal(waited, []);
});

test("a wait is reported once, however often the server is asked", async () => {
  const server = createTcpServer(
    (socket) =>
      void socket
        .on("error", () => {})
        .resume()
        .end(),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const enough = new Error("Asked often enough.");
  const patient = async (ms: number) => {
    waits.push(ms);
    if (waits.length === 3) throw enough;
  };
  const told: string[] = [];
  const error = await withTime({ "timers.setTimeout": patient }, () =>
    awaitRpcServers([{ host: "127.0.0.1", port }], (sentence) => {
      told.push(sentence);
    }),
  )
    .catch((error: Error) => error)
    .finally(() => server.close());
  assert.is(error, enough);
  assert.equal(waits, [1000, 1000, 1000]);
  assert.equal(told, [
    `The rpc-server 127.0.0.1:${port} closed the connection during the handshake (another version or another program?). Waiting for it.`,
  ]);
});

test("devices with a model's blocks are listed, with counts if split", () => {
  const device = (info: object[], all: object[], backend = "cpu") =>
    provenance(
      { config: {}, model: "m", revision: null, layers: [], seed: 0 },
      {
        resolved: {} as never,
        info: { architecture: "a", quantization: "F16", nLayer: 4, nEmbd: 8, devices: info as never },
        backend: { backend, llamaCpp: "0", devices: all as never },
      },
      {},
    ).device;
  const card = { name: "CUDA0", description: "a card", kind: "gpu" };
  const chip = { name: "CPU", description: "", kind: "cpu" };
  const remote = { name: "RPC0", description: "10.0.0.1:5", kind: "gpu" };
  assert.is(device([{ ...card, blocks: 4 }], [card, chip]), "a card");
  assert.is(
    device(
      [
        { ...remote, blocks: 1 },
        { ...chip, blocks: 3 },
      ],
      [],
    ),
    "rpc-server 10.0.0.1:5 (1 of 4 blocks), CPU (3 of 4 blocks)",
  );
  // Where nobody says which device has them: all of the backend's kind.
  assert.is(device([], [card, chip, remote], "cuda"), "a card, rpc-server 10.0.0.1:5");
  assert.is(device([], [card, chip]), "CPU");
  assert.is(device([], [], "metal"), "metal");
});

test("equal values give equal text, whatever the order of their keys", () => {
  assert.is(
    canonicalJson({ b: [{ z: 1, a: null }, 2], "a b": { y: "é", x: true }, a: undefined, Z: 1.5 }),
    '{"Z":1.5,"a b":{"x":true,"y":"é"},"b":[{"a":null,"z":1},2]}',
  );
});

test.run();
