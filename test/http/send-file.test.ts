import { spawnSync } from "node:child_process";
import promises, { mkdir, mkdtemp, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { createApp, createRouter, type Listening, listen, sendFile } from "../../src/http/index.js";
import { until } from "../support/until.js";
import { withFiles } from "../support/with-files.js";

const bytes = Buffer.from(Array.from({ length: 1000 }, (_, index) => index % 251));
let folder: string;
let server: Listening;

test.before(async () => {
  folder = await mkdtemp(join(tmpdir(), "tapline-file-"));
  await writeFile(join(folder, "data"), bytes);
  await writeFile(join(folder, "empty"), "");
  await symlink(join(folder, "data"), join(folder, "link"));
  const router = createRouter();
  router.get("/:name", (ctx) => sendFile(ctx as never, join(folder, ctx.params.name as string)));
  server = await listen(createApp({ routers: [router] }), { port: 0 });
});

test.after(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

async function get(name: string, headers: Record<string, string> = {}, method = "GET") {
  const response = await fetch(`${server.url}/${name}`, { headers, method });
  return {
    status: response.status,
    headers: response.headers,
    body: Buffer.from(await response.arrayBuffer()),
  };
}

test("whole file with length and ETag; HEAD the same without it", async () => {
  const { status, headers, body } = await get("data");
  assert.is(status, 200);
  assert.is(headers.get("content-length"), "1000");
  assert.is(headers.get("content-type"), "application/octet-stream");
  assert.is(headers.get("accept-ranges"), "bytes");
  assert.ok(body.equals(bytes));
  const head = await get("data", {}, "HEAD");
  assert.is(head.headers.get("content-length"), "1000");
  assert.is(head.headers.get("etag"), headers.get("etag"));
  const same = await get("data", { "if-none-match": headers.get("etag") as string });
  assert.is(same.status, 304);
});

(process.platform === "win32" ? test.skip : test)("FIFOs and folders are 404, at once", async () => {
  assert.is(spawnSync("mkfifo", [join(folder, "fifo")]).status, 0);
  await mkdir(join(folder, "folder"));
  for (const name of ["fifo", "folder"]) assert.is((await get(name)).status, 404, name);
});

test("ranges", async () => {
  const cases: [string, number, number][] = [
    ["bytes=0-0", 0, 0],
    ["bytes=10-19", 10, 19],
    ["bytes=990-", 990, 999],
    ["bytes=990-5000", 990, 999],
    ["bytes=-10", 990, 999],
    ["bytes=-5000", 0, 999],
  ];
  for (const [range, start, end] of cases) {
    const { status, headers, body } = await get("data", { range });
    assert.is(status, 206, range);
    assert.is(headers.get("content-range"), `bytes ${start}-${end}/1000`);
    assert.is(headers.get("content-length"), String(end - start + 1));
    assert.ok(body.equals(bytes.subarray(start, end + 1)), range);
  }
  for (const range of ["bytes=1-2,5-6", "lines=1-2", "bytes=x-y", "bytes=-", "bytes=9-3"]) {
    assert.is((await get("data", { range })).status, 200, range);
  }
  for (const range of ["bytes=1000-", "bytes=-0"]) {
    const { status, headers } = await get("data", { range });
    assert.is(status, 416, range);
    assert.is(headers.get("content-range"), "bytes */1000");
  }
});

test("If-None-Match: a list, * and weak tags match; a rewritten file has a new tag", async () => {
  const { headers } = await get("data");
  const etag = headers.get("etag") as string;
  for (const given of [etag, `W/${etag}`, `"a", ${etag}`, " * "]) {
    const answer = await get("data", { "if-none-match": given });
    assert.equal([answer.status, answer.body.length, answer.headers.get("etag")], [304, 0, etag], given);
  }
  for (const given of ['"a"', etag.slice(1, -1), `${etag}x`]) {
    assert.is((await get("data", { "if-none-match": given })).status, 200, given);
  }
  const path = join(folder, "again");
  await writeFile(path, "same");
  const before = (await get("again")).headers.get("etag");
  await utimes(path, 1, 1);
  assert.is.not((await get("again")).headers.get("etag"), before);
});

test("whatever the answer is, the file is closed behind it, once", async () => {
  const etag = (await get("data")).headers.get("etag") as string;
  // What nobody closes the collector does, sooner or later: counted is who asks for it.
  const { open } = promises;
  let closed = 0;
  const counting: typeof open = async (...words) => {
    const file = await open(...words);
    const { close } = file;
    file.close = () => {
      closed++;
      return close();
    };
    return file;
  };
  await withFiles({ open: counting }, async () => {
    for (const [expected, answer] of [
      [304, () => get("data", { "if-none-match": etag })],
      [416, () => get("data", { range: "bytes=5000-" })],
      [200, () => get("data", {}, "HEAD")],
      [200, () => get("empty")],
    ] as const) {
      closed = 0;
      const { status } = await answer();
      assert.equal([status, closed], [expected, 1], "closed before it is answered");
    }
    for (const range of ["", "bytes=0-3"]) {
      closed = 0;
      await get("data", { range });
      // A stream closes its file when all of it is sent, which the client may see first.
      await until(() => closed === 1, "the file that was sent is closed");
    }
  });
});

test("If-Range gives the part only of the file it names", async () => {
  const etag = (await get("data")).headers.get("etag") as string;
  assert.is((await get("data", { range: "bytes=0-1", "if-range": etag })).status, 206);
  assert.is((await get("data", { range: "bytes=0-1", "if-range": '"other"' })).status, 200);
});

test("empty file, absent file, link", async () => {
  const { status, headers } = await get("empty");
  assert.is(status, 200);
  assert.is(headers.get("content-length"), "0");
  assert.is((await get("none")).status, 404);
  assert.is((await get("link")).status, 404);
});

test.run();
