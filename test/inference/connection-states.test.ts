/** The file in which a serving process keeps the states of its connections, for the time after its end. */
import { closeSync, fstatSync, mkdtempSync, readdirSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { UserError } from "../../src/contracts/user-error.js";
import { ConnectionStates, createStates, readStates } from "../../src/inference/process/connection-states.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-states-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

function withFile(run: (file: number) => void): void {
  const file = createStates(folder);
  try {
    run(file);
  } finally {
    closeSync(file);
  }
}

const known = (file: number) => [...readStates(file)];

test("the file has no name, and is empty before the first connection", () =>
  withFile((file) => {
    assert.equal(readdirSync(folder), []);
    assert.equal(known(file), []);
  }));

test("a connection is known from its handover to its end, with the request that waits", () =>
  withFile((file) => {
    const states = new ConnectionStates(file);
    const one = states.add(12);
    const two = states.add(13);
    assert.equal(known(file), [
      [12, undefined],
      [13, undefined],
    ]);
    two.waits({ path: "/v1/models", origin: "https://page.example" });
    one.waits({ path: "/health" });
    assert.equal(known(file), [
      [12, { path: "/health" }],
      [13, { path: "/v1/models", origin: "https://page.example" }],
    ]);
    one.waits(undefined);
    two.remove();
    assert.equal(known(file), [[12, undefined]]);
  }));

test("a record is used again, but not written by the connection before it", () =>
  withFile((file) => {
    const states = new ConnectionStates(file);
    const old = states.add(1);
    old.remove();
    const next = states.add(2);
    const third = states.add(3);
    old.waits({ path: "/late" });
    assert.equal(known(file), [
      [2, undefined],
      [3, undefined],
    ]);
    old.remove();
    const fourth = states.add(4);
    next.waits({ path: "/b" });
    third.waits({ path: "/c" });
    fourth.waits({ path: "/d" });
    assert.equal(known(file), [
      [2, { path: "/b" }],
      [3, { path: "/c" }],
      [4, { path: "/d" }],
    ]);
    assert.ok(fstatSync(file).size <= 3 * 2048);
  }));

test("no request outgrows its record", () =>
  withFile((file) => {
    const states = new ConnectionStates(file);
    const [first, second] = [states.add(1_000_000_000), states.add(2)];
    second.waits({ path: "/b" });
    for (const letter of ['"', "é", "a"]) {
      first.waits({ path: letter.repeat(5000), origin: letter.repeat(256) });
      assert.equal(known(file), [
        [1_000_000_000, { path: letter.repeat(512), origin: letter.repeat(256) }],
        [2, { path: "/b" }],
      ]);
    }
    first.waits({ path: "/a", origin: "a".repeat(257) });
    assert.equal(known(file)[0], [1_000_000_000, { path: "/a" }]);
  }));

test("a record that could not be written is unknown", () =>
  withFile((file) => {
    writeSync(file, '{"id":7}\n', 2048);
    assert.equal(known(file), [[7, undefined]]);
    new ConnectionStates(-1).add(1).waits({ path: "/a" });
  }));

test("a folder without access is named", () => {
  assert.throws(
    () => createStates(join(folder, "absent")),
    (error: Error) =>
      error instanceof UserError &&
      error.message.startsWith(`No file can be created in ${folder}/absent: ENOENT`),
  );
});

test.run();
