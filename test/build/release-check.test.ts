import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { mostBytes, sayPacked } from "../../scripts/build/release-check.js";
import { saying } from "../support/saying.js";

const test = suite<{ path: string }>("release check");

test.before((context) => {
  context.path = join(mkdtempSync(join(os.tmpdir(), "tapline-packed-")), "tapline-linux-x64-1.2.3.tgz");
  writeFileSync(context.path, "");
});
test.after(({ path }) => rmSync(join(path, ".."), { recursive: true, force: true }));

test("a package of more than 15 MB is refused", ({ path }) => {
  truncateSync(path, 15e6);
  sayPacked(path, mostBytes);
  truncateSync(path, 15_200_000);
  assert.throws(
    () => sayPacked(path, mostBytes),
    saying("tapline-linux-x64-1.2.3.tgz takes 15.2 MB, and at most 15.0 MB are allowed."),
  );
  sayPacked(path);
});

test.run();
