/** What the hub's cache says of models of several commits and parts, and what is left alone where everything is here. */
import { mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { UserError } from "../../src/contracts/user-error.js";
import { CachedRepository } from "../../src/models/hub/cache.js";
import { listCached, removeCached } from "../../src/models/hub/cached.js";
import { hasTag } from "../../src/models/hub/choose.js";
import { RangeIgnored } from "../../src/models/hub/fault.js";
import { hubFetch } from "../../src/models/hub/hub-fetch.js";
import { resolveHubPlace } from "../../src/models/hub/index.js";
import { underLock } from "../../src/models/hub/lock.js";
import { hubSettings } from "../../src/models/hub/settings.js";
import { resolveModel } from "../../src/models/resolve.js";
import { withFiles } from "../support/with-files.js";
import { mainCommit, sha256, TestHub } from "./support/hub.js";

const variables = ["HF_ENDPOINT", "HF_HOME", "HF_HUB_CACHE", "HF_TOKEN", "HF_HUB_OFFLINE"];
const saved = Object.fromEntries(variables.map((name) => [name, process.env[name]]));
let hub: TestHub;
let home: string;

test.before.each(async () => {
  hub = await TestHub.open();
  home = await mkdtemp(join(tmpdir(), "tapline-cached-"));
  for (const name of variables) delete process.env[name];
  process.env.HF_ENDPOINT = hub.url;
  process.env.HF_HOME = home;
});
test.after.each(async () => {
  await hub.close();
  await rm(home, { recursive: true, force: true });
  for (const name of variables) {
    if (saved[name] === undefined) delete process.env[name];
    else process.env[name] = saved[name];
  }
});

/** So many bytes that begin as a GGUF does. */
const gguf = (bytes: number) => Buffer.concat([Buffer.from("GGUF"), Buffer.alloc(bytes - 4, bytes)]);

test("a model of several commits is one, and the commit that main means comes first", async () => {
  const [early, late] = ["0".repeat(40), "f".repeat(40)] as const;
  for (const [name, commit, tagged] of [
    ["tiny/early", early, late],
    ["tiny/late", late, early],
  ] as const) {
    hub.repositories[name] = { files: { "a-F16.gguf": gguf(2000) }, commit, refs: { v1: tagged } };
    await resolveModel(name, { revision: "v1" });
    await resolveModel(name);
    const found = (await listCached()).models.filter(({ repository }) => repository === name);
    assert.equal(
      found.map(({ id, commits }) => [id, commits]),
      [[`${name}/a-F16.gguf`, [commit, tagged]]],
    );
  }
});

test("a split model's last use and name cover all its parts", async () => {
  const parts = [1, 2, 3].map((part) => [`x/y-0000${part}-of-00003.gguf`, gguf(2000 + part)] as const);
  hub.repositories["a/split"] = { files: Object.fromEntries(parts) };
  await resolveModel("a/split");
  for (const [part, seconds] of [1000, 5000, 3000].entries()) {
    const blob = sha256(parts[part]?.[1] as Buffer);
    await utimes(join(home, "hub/models--a--split/blobs", blob), seconds, seconds);
  }
  assert.equal(
    (await listCached()).models.map(({ lastUsed, bytes }) => [lastUsed, bytes]),
    [[5000, 6006]],
  );
  const { removed, freed } = await removeCached("a/split/x/y-00002-of-00003.gguf");
  assert.equal([removed, freed], [["a/split/x/y-00001-of-00003.gguf"], 6006]);
  assert.equal((await listCached()).models, []);
});

test("where everything is here, a cache that is only read is enough", async () => {
  hub.repositories["tiny/demo"] = { files: { "a-F16.gguf": gguf(2000) } };
  const { path } = await resolveModel("tiny/demo");
  const no = () => Promise.reject(Object.assign(new Error("EROFS"), { code: "EROFS" }));
  const again = await withFiles({ mkdir: no, writeFile: no, rename: no, symlink: no, link: no }, () =>
    resolveModel("tiny/demo"),
  );
  assert.is(again.path, path);
});

test("a repository of which somebody is downloading a file stays as it is", async () => {
  hub.repositories["tiny/demo"] = { files: { "a-F16.gguf": gguf(2000) } };
  await resolveModel("tiny/demo");
  const cached = new CachedRepository(join(home, "hub"), "tiny/demo");
  const hash = "b".repeat(64);
  await writeFile(cached.incomplete(hash), "begun");
  const never = async () => assert.unreachable("nobody else holds it") as never;
  const refused = await underLock(
    cached.lock(hash),
    () => removeCached("tiny/demo").catch((error: Error) => error.message),
    never,
  );
  assert.is(refused, "Another process is downloading tiny/demo; stop it first.");
  assert.equal(
    (await listCached()).models.map(({ id }) => id),
    ["tiny/demo/a-F16.gguf"],
  );
  assert.is((await removeCached("tiny/demo")).freed, 2005);
});

test("what is asked of a hub comes as it is, and from where it was asked for", async () => {
  const ranges: Record<string, string | undefined> = {
    "bytes=5-9": "bytes 5-9/10",
    "bytes=6-9": "bytes 0-9/10",
    "bytes=7-9": undefined,
    "bytes=0-9": undefined,
  };
  const codings: unknown[] = [];
  const server = createServer((request, response) => {
    codings.push(request.headers["accept-encoding"]);
    const told = ranges[String(request.headers.range)];
    response.writeHead(206, told === undefined ? {} : { "Content-Range": told });
    response.end("12345");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/x`;
  const ask = hubFetch(await hubSettings(), { repository: "a/b" });
  const taken = await Promise.all(
    Object.keys(ranges).map((range) =>
      ask(url, { headers: { Range: range } }).then(
        (response) => response.text(),
        (error) => error instanceof RangeIgnored && "ignored",
      ),
    ),
  );
  codings.length = 0;
  await (await ask(url)).text();
  await new Promise((resolve) => server.close(resolve));
  assert.equal(taken, ["12345", "ignored", "ignored", "12345"]);
  assert.equal(codings, ["identity"], "as many bytes come as are told");
});

test("a quantisation's name is met as it is, in any case", () => {
  for (const [path, tag, met] of [
    ["x-v1.5.gguf", "v1.5", true],
    ["x-v1z5.gguf", "v1.5", false],
    ["x-q4_k_m.gguf", "Q4_K_M", true],
    ["Q8_0/x.gguf", "q8_0", true],
    ["x-Q8_01.gguf", "Q8_0", false],
  ] as const) {
    assert.is(hasTag(path, tag), met, `${path} ${tag}`);
  }
});

test("a file of a commit is known by its name alone; what a folder has is asked for", async () => {
  hub.repositories["tiny/demo"] = { files: { "d/w.npz": gguf(2000), "d/more.txt": Buffer.from("x") } };
  const asks = async (place: string) => {
    hub.requests.length = 0;
    const choose = (paths: readonly string[]) => {
      if (!paths.includes("d/w.npz")) throw new UserError("There is none.");
      return ["d/w.npz"];
    };
    const found = await resolveHubPlace(place, choose, { revision: mainCommit });
    assert.is(found?.source, `tiny/demo/d/w.npz@${mainCommit}`);
    return hub.requests.length > 0;
  };
  assert.equal(
    [await asks("tiny/demo/d/w.npz"), await asks("tiny/demo/d/w.npz"), await asks("tiny/demo/d")],
    [true, false, true],
  );
});

test.run();
