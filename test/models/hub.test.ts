import { readFileSync } from "node:fs";
import promises, {
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { createServer } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { UserError } from "../../src/contracts/user-error.js";
import { listCached, removeCached } from "../../src/models/hub/cached.js";
import { hubFetch } from "../../src/models/hub/hub-fetch.js";
import { hubSettings } from "../../src/models/hub/settings.js";
import { demoModelPath, type ResolveOptions, resolveModel } from "../../src/models/resolve.js";
import { fc } from "../support/fc.js";
import { TestRandom } from "../support/random.js";
import { mainCommit, sha256, TestHub } from "./support/hub.js";

const demo = readFileSync(demoModelPath);
const other = "fedcba9876543210fedcba9876543210fedcba98";

let hub: TestHub;
let home: string;
const variables = [
  "HF_ENDPOINT",
  "HF_HOME",
  "HF_HUB_CACHE",
  "HF_TOKEN",
  "HF_HUB_OFFLINE",
  "HF_HUB_DOWNLOAD_TIMEOUT",
];
const saved = Object.fromEntries(variables.map((name) => [name, process.env[name]]));

test.before.each(async () => {
  hub = await TestHub.open();
  home = await mkdtemp(join(tmpdir(), "tapline-hub-"));
  for (const name of variables) delete process.env[name];
  process.env.HF_ENDPOINT = hub.url;
  process.env.HF_HOME = home;
  hub.repositories["tiny/demo"] = {
    files: { "README.md": Buffer.from("a model"), "demo-F16.gguf": demo },
    refs: { v1: other, "refs/pr/1": other },
  };
});
test.after.each(async () => {
  await hub.close();
  await rm(home, { recursive: true, force: true });
  for (const name of variables) {
    if (saved[name] === undefined) delete process.env[name];
    else process.env[name] = saved[name];
  }
});

const folder = (repository = "tiny/demo") => join(home, "hub", `models--${repository.replace("/", "--")}`);

/** A small file that begins as a GGUF does. */
function gguf(bytes: number, seed = 1): Buffer {
  const random = new TestRandom(seed);
  const content = Buffer.from(Uint8Array.from({ length: bytes }, () => random.below(256)));
  content.write("GGUF");
  return content;
}

async function fault(model: string, options?: ResolveOptions): Promise<string> {
  try {
    await resolveModel(model, options);
  } catch (error) {
    assert.instance(error, UserError, String((error as Error).stack));
    assert.match((error as Error).message, /^[^\n]+\.$/);
    return (error as Error).message;
  }
  return assert.unreachable("it resolved") as never;
}

async function names(path: string): Promise<string[]> {
  return (await readdir(path, { recursive: true }).catch(() => [])).sort();
}

test("a model of the hub is downloaded into the standard cache, once", async () => {
  const steps: number[] = [];
  const resolved = await resolveModel("tiny/demo", {
    onDownload: ({ file, done, total }) => {
      assert.is(file, "demo-F16.gguf");
      assert.is(total, demo.length);
      steps.push(done);
    },
  });
  assert.is(resolved.path, join(folder(), "snapshots", mainCommit, "demo-F16.gguf"));
  assert.is(resolved.repository, "tiny/demo");
  assert.is(resolved.commit, mainCommit);
  assert.equal(
    resolved.weights.map(({ name, bytes }) => [name, bytes]),
    [["demo-F16.gguf", demo.length]],
  );
  assert.ok(demo.equals(await readFile(resolved.path)));
  assert.is(await readlink(resolved.path), `../../blobs/${sha256(demo)}`);
  assert.is(await readFile(join(folder(), "refs", "main"), "utf8"), mainCommit);
  assert.is(steps.at(-1), demo.length);
  assert.equal(
    steps,
    [...steps].sort((a, b) => a - b),
  );
  assert.equal(await names(join(folder(), "blobs")), [sha256(demo)]);
  assert.equal(await names(join(home, "hub", ".locks", "models--tiny--demo")), []);

  await resolveModel("tiny/demo");
  assert.is(hub.downloads.length, 1);
});

test("a file of the repository, a quantisation in any case, a file in a folder", async () => {
  const [q4, q8, deep] = [gguf(3000, 1), gguf(4000, 2), gguf(5000, 3)];
  hub.repositories["a/b"] = {
    files: {
      "x-Q4_K_M.gguf": q4,
      "x.Q8_0.gguf": q8,
      "IQ2_XS/x-00001.gguf": deep,
      "mmproj-Q4_K_M.gguf": gguf(2000),
    },
  };
  const bytes = async (model: string) => readFile((await resolveModel(model)).path);
  assert.ok(q4.equals(await bytes("a/b")));
  assert.ok(q8.equals(await bytes("a/b:q8_0")));
  assert.ok(q8.equals(await bytes("a/b/x.Q8_0.gguf")));
  assert.ok(deep.equals(await bytes("a/b:IQ2_XS")));
  assert.ok(deep.equals(await bytes("a/b/IQ2_XS/x-00001.gguf")));
  // A quantisation is a whole word: Q4_K is not Q4_K_M.
  assert.match(
    await fault("a/b:Q4_K"),
    "a/b has no Q4_K; available: a/b/IQ2_XS/x-00001.gguf, a/b/x-Q4_K_M.gguf",
  );
  assert.match(await fault("a/b/none.gguf"), "a/b has no file none.gguf; available:");
});

test("all parts of a split model are downloaded, and progress counts them together", async () => {
  const parts = Object.fromEntries(
    [1, 2, 3].map((part) => [`big/x-Q8_0-0000${part}-of-00003.gguf`, gguf(2000 + part, part)]),
  );
  hub.repositories["a/split"] = { files: parts };
  let last = { done: 0, total: 0, received: 0 };
  const { path, weights } = await resolveModel("a/split", {
    onDownload: (progress) => {
      last = progress;
    },
  });
  assert.match(path, /big\/x-Q8_0-00001-of-00003\.gguf$/);
  assert.equal(
    weights.map(({ bytes }) => bytes),
    [2001, 2002, 2003],
  );
  assert.equal([last.done, last.total, last.received], [6006, 6006, 6006]);
  delete parts["big/x-Q8_0-00002-of-00003.gguf"];
  assert.match(await fault("a/split", { revision: mainCommit }), "lacks big/x-Q8_0-00002-of-00003.gguf");
});

test("revisions: a tag and a commit, each with a snapshot, sharing the blob", async () => {
  const tagged = await resolveModel("tiny/demo", { revision: "v1" });
  assert.is(tagged.commit, other);
  await resolveModel("tiny/demo", { revision: "refs/pr/1" });
  const main = await resolveModel("tiny/demo");
  assert.equal(
    await names(join(folder(), "snapshots")).then((all) => all.filter((name) => !name.includes("/"))),
    [mainCommit, other],
  );
  assert.is(await readFile(join(folder(), "refs", "refs/pr/1"), "utf8"), other);
  assert.is(hub.downloads.length, 1);
  // A commit never changes: what is here of it needs no network.
  hub.requests.length = 0;
  const pinned = await resolveModel("tiny/demo/demo-F16.gguf", { revision: main.commit as string });
  assert.is(pinned.path, main.path);
  assert.is(hub.requests.length, 0);
  assert.match(await fault("tiny/demo", { revision: "v9" }), 'tiny/demo has no revision "v9".');
  assert.match(await fault("tiny/demo", { revision: "../../x" }), "is not a valid revision");
  assert.match(await fault("demo", { revision: "main" }), "has no revisions");
});

test("offline: what is cached, and nothing else; without a network, the same", async () => {
  await resolveModel("tiny/demo");
  process.env.HF_HUB_OFFLINE = "1";
  hub.requests.length = 0;
  assert.is((await resolveModel("tiny/demo")).commit, mainCommit);
  assert.is((await resolveModel("tiny/demo:F16")).commit, mainCommit);
  assert.match(
    await fault("tiny/demo:Q8_0"),
    "HF_HUB_OFFLINE is set, but Q8_0 of tiny/demo at main is not in the cache.",
  );
  assert.match(await fault("tiny/none"), "HF_HUB_OFFLINE is set");
  assert.is(hub.requests.length, 0);
  delete process.env.HF_HUB_OFFLINE;
  process.env.HF_ENDPOINT = "http://127.0.0.1:9";
  assert.is((await resolveModel("tiny/demo")).commit, mainCommit);
  assert.match(
    await fault("tiny/none"),
    /tiny\/none is not on this machine, and 127\.0\.0\.1:9 is unreachable \(.+\)\./,
  );
});

if (process.platform !== "win32") {
  test("links to folders in a snapshot are not followed: they may lead in circles", async () => {
    const { path } = await resolveModel("tiny/demo");
    for (const name of ["one", "two", "three"]) await symlink(".", join(dirname(path), name));
    const { models } = await listCached();
    assert.equal(
      models.map(({ id }) => id),
      ["tiny/demo/demo-F16.gguf"],
    );
    process.env.HF_HUB_OFFLINE = "1";
    assert.is((await resolveModel("tiny/demo")).path, path);
  });
}

test("on a disk without links the snapshot holds a copy, which is made once", async () => {
  const { link, symlink } = promises;
  const refuse = () => Promise.reject(Object.assign(new Error("no links"), { code: "EPERM" }));
  Object.assign(promises, { link: refuse, symlink: refuse });
  syncBuiltinESMExports();
  try {
    const { path } = await resolveModel("tiny/demo");
    const made = await lstat(path);
    assert.ok(made.isFile());
    assert.is((await resolveModel("tiny/demo")).path, path);
    assert.is((await lstat(path)).ino, made.ino);
    // One that was broken off is made once more.
    await truncate(path, 100);
    await resolveModel("tiny/demo");
    assert.is((await lstat(path)).size, demo.length);
  } finally {
    Object.assign(promises, { link, symlink });
    syncBuiltinESMExports();
  }
});

test("removing one file leaves what is being downloaded beside it", async () => {
  await resolveModel("tiny/demo");
  const begun = join(folder(), "blobs", `${sha256(gguf(8))}.tapline.incomplete`);
  await writeFile(begun, "GGUF");
  assert.is((await removeCached("tiny/demo:F16")).freed, demo.length);
  assert.is((await stat(begun)).size, 4);
  assert.is((await removeCached("tiny/demo")).freed, 4);
  assert.not.ok((await readdir(join(home, "hub"))).includes("models--tiny--demo"));
});

test("removing a file keeps the bytes that another file shares with it", async () => {
  hub.repositories["tiny/demo"]!.files["demo-Q8_0.gguf"] = demo;
  await resolveModel("tiny/demo:F16");
  await resolveModel("tiny/demo:Q8_0");
  assert.equal(await names(join(folder(), "blobs")), [sha256(demo)]);
  assert.is((await removeCached("tiny/demo:F16")).freed, 0);
  process.env.HF_HUB_OFFLINE = "1";
  assert.ok(demo.equals(await readFile((await resolveModel("tiny/demo:Q8_0")).path)));
  assert.match(await fault("tiny/demo:F16"), "is not in the cache");
  assert.is((await removeCached("tiny/demo:Q8_0")).freed, demo.length);
  assert.not.ok((await readdir(join(home, "hub"))).includes("models--tiny--demo"));
});

test("HF_HUB_CACHE is the cache itself, and a bad HF_ENDPOINT is told", async () => {
  process.env.HF_HUB_CACHE = join(home, "elsewhere");
  assert.match((await resolveModel("tiny/demo")).path, join(home, "elsewhere", "models--tiny--demo"));
  process.env.HF_ENDPOINT = "hub.example";
  assert.match(await fault("tiny/demo"), 'HF_ENDPOINT must be an http or https address, got "hub.example".');
});

test("a token goes to the hub and not to where the hub sends us", async () => {
  hub.repositories["tiny/demo"]!.token = "hf_mine";
  assert.match(
    await fault("tiny/demo"),
    /is neither a local file nor a repository on .* \(private repositories require a token in HF_TOKEN\)\./,
  );
  process.env.HF_TOKEN = "hf_mine";
  await resolveModel("tiny/demo");
  const seen = (server: string) =>
    new Set(hub.requests.filter((each) => each.server === server).map(({ authorization }) => authorization));
  assert.ok(seen("hub").has("Bearer hf_mine"));
  assert.equal([...seen("cdn")], [undefined]);
  delete process.env.HF_TOKEN;
  await writeFile(join(home, "token"), "hf_mine\n");
  await resolveModel("tiny/demo");
  process.env.HF_TOKEN = "hf_expired";
  assert.match(await fault("tiny/demo"), "rejected the token (HF_TOKEN); it may have expired.");
  process.env.HF_TOKEN = "two words";
  assert.match(await fault("tiny/demo"), "contains a space");
});

test("the token is sent to the hub's own origin only, whatever redirects say", async () => {
  const seen: string[] = [];
  const listen = async (name: string, location?: string) => {
    const server = createServer((request, response) => {
      seen.push(`${name} ${request.headers.authorization ?? "nothing"}`);
      response.writeHead(
        location === undefined ? 200 : 302,
        location === undefined ? {} : { Location: location },
      );
      response.end("{}");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  };
  const other = await listen("other");
  const sends = await listen("hub", `${other.origin}/elsewhere`);
  process.env.HF_ENDPOINT = sends.origin;
  process.env.HF_TOKEN = "hf_mine";
  try {
    const ask = hubFetch(await hubSettings(), { repository: "a/b", revision: "main" } as never);
    await ask(`${other.origin}/next-page`);
    await ask(`${sends.origin}/file`);
    await ask(sends.origin.replace("127.0.0.1", "localhost")).catch(() => {});
    assert.equal(seen.slice(0, 3), ["other nothing", "hub Bearer hf_mine", "other nothing"]);
    assert.is(seen.filter((line) => line.includes("hf_mine")).length, 1);
  } finally {
    for (const { server } of [other, sends]) {
      server.closeAllConnections();
      server.close();
    }
  }
});

test("gated: what to do with and without a token", async () => {
  hub.repositories["tiny/demo"]!.gated = true;
  assert.match(await fault("tiny/demo"), /is gated: accept its terms at http.*\/tiny\/demo and set HF_TOKEN/);
  process.env.HF_TOKEN = "hf_stranger";
  assert.match(await fault("tiny/demo"), "is gated, and the token's account has no access yet");
  process.env.HF_TOKEN = "hf_granted";
  await resolveModel("tiny/demo");
});

test("repositories without a model to load", async () => {
  hub.repositories["a/text"] = { files: { "README.md": Buffer.from("x") } };
  hub.repositories["a/torch"] = { files: { "model.safetensors": Buffer.from("x") } };
  hub.repositories["a/many"] = { files: { "x-F16.gguf": gguf(2000), "x-IQ2.gguf": gguf(2000) } };
  hub.repositories["a/fake"] = { files: { "fake.gguf": Buffer.from("<!doctype html>") } };
  assert.is(await fault("a/text"), "a/text has no .gguf file.");
  assert.match(await fault("a/torch"), "convert_hf_to_gguf.py");
  assert.is(
    await fault("a/many"),
    "a/many has several models, but none in Q4_K_M or Q8_0: choose one of a/many/x-F16.gguf, a/many/x-IQ2.gguf.",
  );
  assert.match(await fault("a/fake"), "is not a GGUF file");
  assert.match(await fault("a/none"), "is neither a local file nor a repository");
});

test("servers in trouble are asked again, and in the end told", async () => {
  let times = 0;
  hub.faults.status = (path) => (path.includes("/revision/") && times++ < 2 ? { status: 503 } : undefined);
  await resolveModel("tiny/demo");
  assert.is(times, 3);
  hub.faults.status = () => ({ status: 500 });
  assert.match(await fault("a/b"), "answered 500 for a/b; try again later.");
  hub.faults.status = () => ({ status: 403 });
  assert.match(await fault("a/b"), "denied access to a/b");
});

test("whatever the hub says, nothing is written outside the repository's folder", async () => {
  for (const path of ["../../evil.gguf", "/etc/evil.gguf", "a/../../evil.gguf", "a\\..\\evil.gguf"]) {
    hub.repositories["a/evil"] = { files: { [path]: gguf(2000) } };
    assert.match(await fault("a/evil"), "returned an unexpected description of a/evil.");
  }
  for (const id of ["a/../b", "a/b/../../c.gguf", "a/--b", "../a", "a/b:", "a/.."]) {
    assert.match(await fault(id), /No model found at|is not a \.gguf file|contains/);
  }
  assert.equal(await names(join(home, "hub")), []);
});

test("connections cut at random bytes: the file is whole, each byte asked once", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(40_000), { maxLength: 12 }), fc.nat(), async (cuts, seed) => {
      const content = gguf(100_000, seed);
      hub.repositories["a/cut"] = { files: { "cut.gguf": content } };
      const left = [...cuts];
      hub.faults = { cutAfter: () => left.shift() };
      hub.requests.length = 0;
      const { path } = await resolveModel("a/cut");
      assert.ok(content.equals(await readFile(path)));
      const starts = hub.downloads.map(({ range }) => Number(/\d+/.exec(range ?? "0")?.[0]));
      assert.equal(
        starts,
        [...starts].sort((a, b) => a - b),
      );
      await rm(join(home, "hub"), { recursive: true });
    }),
    { numRuns: 15 },
  );
});

test("a wrong content is not kept, whether it has the right length or not", async () => {
  hub.faults = { corrupt: true };
  assert.match(
    await fault("tiny/demo"),
    /^demo-F16\.gguf does not match the checksum given by .*; it was discarded\.$/,
  );
  assert.equal(await names(join(folder(), "blobs")), []);
  assert.equal(await names(join(folder(), "snapshots")), []);
  hub.faults = { pointer: true };
  assert.match(await fault("tiny/demo"), /sent \d+ bytes instead of the \d+ bytes of demo-F16\.gguf/);
  hub.faults = {};
  await resolveModel("tiny/demo");
});

test("an earlier attempt is continued; a damaged file is fetched again", async () => {
  const partial = join(folder(), "blobs", `${sha256(demo)}.tapline.incomplete`);
  await mkdir(join(folder(), "blobs"), { recursive: true });
  await writeFile(partial, demo.subarray(0, 1_000_000));
  let last = { done: 0, received: 0 };
  const { path } = await resolveModel("tiny/demo", {
    onDownload: (progress) => {
      if (progress.done <= 1_000_000) assert.is(progress.received, 0);
      last = progress;
    },
  });
  assert.ok(demo.equals(await readFile(path)));
  assert.equal([last.done, last.received], [demo.length, demo.length - 1_000_000]);
  assert.equal(
    hub.downloads.map(({ range }) => range),
    [`bytes=1000000-${demo.length - 1}`],
  );

  for (const left of [
    Buffer.alloc(1_000_000),
    Buffer.concat([demo, Buffer.alloc(5)]),
    Buffer.alloc(demo.length),
  ]) {
    await rm(join(home, "hub"), { recursive: true });
    await mkdir(join(folder(), "blobs"), { recursive: true });
    await writeFile(partial, left);
    let most = 0;
    const { path } = await resolveModel("tiny/demo", {
      onDownload: ({ done }) => {
        most = Math.max(most, done);
      },
    });
    assert.ok(demo.equals(await readFile(path)));
    assert.is(most, demo.length, "never more than there is");
  }
});

test("a server that ignores ranges: from the start again", async () => {
  const cuts = [500_000];
  hub.faults = { ignoreRanges: true, cutAfter: () => cuts.shift() };
  assert.ok(demo.equals(await readFile((await resolveModel("tiny/demo")).path)));
});

test("a connection that falls silent is opened again; a slow one is left alone", async () => {
  process.env.HF_HUB_DOWNLOAD_TIMEOUT = "0.3";
  hub.repositories["a/slow"] = { files: { "slow.gguf": gguf(2000) } };
  let stalls = 1;
  hub.faults = { stall: () => stalls-- > 0 };
  await resolveModel("a/slow");
  assert.ok(hub.downloads.length >= 2);
  // In all it takes longer than the silence that is borne. A machine that stands still makes a silence of its own: one
  // of several downloads without a second connection shows that slowness alone opens none.
  const connections: number[] = [];
  do {
    await rm(join(home, "hub"), { recursive: true });
    hub.faults = { dripMs: 20, dripBytes: 100 };
    hub.requests.length = 0;
    await resolveModel("a/slow");
    connections.push(hub.downloads.length);
    assert.ok(connections.length <= 10, `${connections} connections for one file each`);
  } while (connections.at(-1) !== 1);
});

test("a cancelled download stops at once and is continued later", async () => {
  hub.faults = { dripMs: 5, dripBytes: 20_000 };
  const stop = new AbortController();
  const reason = new Error("enough");
  try {
    await resolveModel("tiny/demo", {
      signal: stop.signal,
      onDownload: ({ done }) => done > 200_000 && stop.abort(reason),
    });
    assert.unreachable();
  } catch (error) {
    assert.is(error, reason);
  }
  assert.equal(await names(join(folder(), "snapshots")), []);
  const { size } = await stat(join(folder(), "blobs", `${sha256(demo)}.tapline.incomplete`));
  assert.ok(size > 200_000 && size < demo.length);
  hub.faults = {};
  await resolveModel("tiny/demo");
  assert.is(hub.downloads.at(-1)?.range, `bytes=${size}-${demo.length - 1}`);
});

test.run();
