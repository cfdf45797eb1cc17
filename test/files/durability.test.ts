/**
 * What somebody was promised is on disk before they hear of it, and no name leads to bytes that are not: seen by a
 * layer that remembers what was written, named and synced.
 */
import { readFileSync } from "node:fs";
import promises, { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { syncFolder, writeDurably } from "../../src/files/durable.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { Vectors } from "../../src/library/index.js";
import { demoModelPath, resolveModel } from "../../src/models/resolve.js";
import { backUp } from "../../src/studies/backup.js";
import { openStore } from "../../src/studies/store/open.js";
import { demoInspect, openHarness, setMeddle } from "../lab/harness.js";
import { sha256, TestHub } from "../models/support/hub.js";
import { startDatabases } from "../studies/support/databases.js";
import { type Disk, watchDisk } from "../support/disk.js";

const databases = await startDatabases();
let folder: string;
let disk: Disk;
test.before.each(async () => {
  folder = await mkdtemp(join(tmpdir(), "tapline-disk-"));
  disk = watchDisk();
});
test.after.each(async () => {
  disk.stop();
  await rm(folder, { recursive: true, force: true });
});
test.after(() => databases.close());

test("the layer sees what is missing", async () => {
  const path = join(folder, "a");
  await writeFile(path, "x");
  assert.match(disk.lossOf(path) as string, "the bytes of");
  await writeDurably(path, "y");
  assert.is(disk.lossOf(path), null);
  await mkdir(join(folder, "new"));
  await writeDurably(
    join(folder, "new", "b"),
    ["y", "z"].map((text) => Buffer.from(text)),
  );
  assert.match(disk.lossOf(join(folder, "new", "b")) as string, /the name of .*new is not/);
  await syncFolder(folder);
  assert.is(disk.lossOf(join(folder, "new", "b")), null);
  await rm(path);
  assert.not(disk.isGone(path));
  await syncFolder(folder);
  assert.ok(disk.isGone(path));
  assert.equal(disk.hasty, []);
});

test("what breaks off leaves the former file as it was, and nothing beside it", async () => {
  const path = join(folder, "kept");
  await writeDurably(path, "former");
  const broken = (async function* () {
    yield Buffer.from("begun");
    throw new Error("No more comes.");
  })();
  assert.is(await writeDurably(path, broken).catch((error) => error.message), "No more comes.");
  assert.equal([await promises.readdir(folder), readFileSync(path, "utf8")], [["kept"], "former"]);
});

test("a job is on disk when acknowledged: submission, end and deletion", async () => {
  const lab = await openHarness({ home: folder, meddle: "hang" });
  try {
    const { id } = await lab.submit(demoInspect);
    const path = join(lab.lab.folder, id, "job.json");
    assert.is(disk.lossOf(path), null);
    await lab.until(id, ({ status }) => status === "running");
    assert.is(disk.lossOf(path), null);
    assert.is((await lab.request("POST", `/jobs/${id}/cancel`, {})).body.status, "cancelled");
    assert.is(disk.lossOf(path), null);
    assert.is(JSON.parse(readFileSync(path, "utf8")).status, "cancelled");
    assert.is((await lab.request("DELETE", `/jobs/${id}`)).status, 200);
    assert.ok(disk.isGone(join(lab.lab.folder, id)));
    assert.equal(disk.hasty, []);
  } finally {
    setMeddle(undefined, folder);
    await lab.close();
  }
});

test("a job is listed, and runs, for everybody who asks, once that is on disk", async () => {
  const lab = await openHarness({ home: folder, meddle: "hang" });
  const { rename } = promises;
  const listed: unknown[] = [];
  let asked = () => {};
  let write = () => {};
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const mayBeWritten = new Promise<void>((resolve) => {
    write = resolve;
  });
  promises.rename = async (from, to) => {
    if (readFileSync(from, "utf8").includes('"status":"queued"')) {
      listed.push(...(await lab.request("GET", "/jobs")).body.jobs);
    }
    if (readFileSync(from, "utf8").includes('"status":"running"')) {
      asked();
      await mayBeWritten;
    }
    return rename(from, to);
  };
  syncBuiltinESMExports();
  try {
    const { id } = await lab.submit(demoInspect);
    assert.equal(listed, []);
    await isAsked;
    assert.equal(
      (await lab.request("GET", "/jobs")).body.jobs.map((job: { id: string }) => job.id),
      [id],
    );
    const whileWritten = (await lab.request("GET", `/jobs/${id}`)).body;
    assert.equal([whileWritten.status, whileWritten.started], ["queued", null]);
    write();
    await lab.until(id, ({ status }) => status === "running");
    await lab.request("POST", `/jobs/${id}/cancel`, {});
  } finally {
    write();
    promises.rename = rename;
    syncBuiltinESMExports();
    setMeddle(undefined, folder);
    await lab.lab.close();
  }
});

test("an artifact is named when its bytes are on disk, and listed afterwards", async () => {
  const artifacts = new Artifacts(folder);
  await artifacts.create("a.npz", async (file) => {
    await file.write(Buffer.from("some"), 0);
    await file.write(Buffer.from(" bytes"), 4);
  });
  assert.equal(artifacts.names, ["a.npz"]);
  assert.is(disk.lossOf(join(folder, "a.npz")), null);
  assert.equal(disk.hasty, []);
});

test("a downloaded file has its name when its bytes are on disk", async () => {
  const hub = await TestHub.open();
  const bytes = readFileSync(demoModelPath);
  hub.repositories["tiny/demo"] = { files: { "demo-F16.gguf": bytes } };
  const saved = { ...process.env };
  Object.assign(process.env, { HF_ENDPOINT: hub.url, HF_HOME: folder });
  delete process.env.HF_HUB_OFFLINE;
  delete process.env.HF_HUB_CACHE;
  try {
    await resolveModel("tiny/demo");
    const blob = join(folder, "hub", "models--tiny--demo", "blobs", sha256(bytes));
    assert.not.match(String(disk.lossOf(blob)), "the bytes of");
    assert.equal(disk.hasty, []);
  } finally {
    process.env = saved;
    await hub.close();
  }
});

test("what is put into the library is there, what was removed is gone", async () => {
  const vectors = new Vectors(folder);
  const model = { id: "m", fingerprint: "f", nEmbd: 1, nLayer: 1 };
  await vectors.put("happy", new Map([[0, Float32Array.of(1)]]), model, { note: "" });
  const path = join(folder, "library", "vectors", "happy.safetensors");
  assert.is(disk.lossOf(path), null);
  await vectors.remove("happy");
  assert.ok(disk.isGone(path));
  assert.equal(disk.hasty, []);
});

for (const database of databases.all) {
  test(`${database.name}: commits are synced if configured; a backup is on disk`, async () => {
    const store = await openStore(database.fresh());
    try {
      const setting = async (db: typeof store.db, query: string) =>
        String(Object.values((await sql.raw(query).execute(db)).rows[0] as object)[0]);
      const query = database.name === "sqlite" ? "pragma synchronous" : "show synchronous_commit";
      // SQLite: 2 is FULL, 1 is NORMAL.
      const [each, now] = database.name === "sqlite" ? ["2", "1"] : ["on", "off"];
      assert.equal([await setting(store.db, query), await setting(store.quick, query)], [each, now]);
      if (database.name === "sqlite") assert.is(await setting(store.db, "pragma journal_mode"), "wal");
      const path = join(folder, "studies.backup");
      await backUp(store, path);
      assert.is(disk.lossOf(path), null);
      assert.equal(disk.hasty, []);
    } finally {
      await store.close();
    }
  });
}

test.run();
