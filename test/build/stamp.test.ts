import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { choices } from "../../scripts/build/plan.js";
import {
  hashInputs,
  isCurrent,
  processorId,
  readStamp,
  type Stamp,
  writeStamp,
} from "../../scripts/build/stamp.js";

const test = suite<{ root: string }>("stamp");

test.before.each((context) => {
  context.root = mkdtempSync(join(os.tmpdir(), "tapline-stamp-"));
  mkdirSync(join(context.root, "native", "engine"), { recursive: true });
  mkdirSync(join(context.root, "scripts", "build"), { recursive: true });
  writeFileSync(join(context.root, "CMakeLists.txt"), "project(x)\n");
  writeFileSync(join(context.root, "scripts", "build", "exports.map"), "{};\n");
  writeFileSync(join(context.root, "scripts", "build", "rename.js"), "rename();\n");
  writeFileSync(join(context.root, "native", "engine", "loop.cpp"), "int a;\n");
});
test.after.each(({ root }) => rmSync(root, { recursive: true, force: true }));

test("the same sources and options give the same hash", ({ root }) => {
  assert.is(hashInputs(root, { backend: "cpu" }), hashInputs(root, { backend: "cpu" }));
});

test("every source, the build description and every option count", ({ root }) => {
  const seen = new Set([hashInputs(root, { backend: "cpu" }), hashInputs(root, { backend: "cuda" })]);
  const change = (file: string, text: string) => {
    writeFileSync(join(root, file), text);
    seen.add(hashInputs(root, { backend: "cpu" }));
  };
  change("native/engine/loop.cpp", "int b;\n");
  change("native/engine/loop.h", "int b;\n");
  change("native/engine/loop.inc", "int b;\n");
  change("CMakeLists.txt", "project(y)\n");
  change("scripts/build/rename.js", "other();\n");
  assert.is(seen.size, 7);
});

test("a note next to the sources does not count", ({ root }) => {
  const before = hashInputs(root, {});
  writeFileSync(join(root, "native", "README.md"), "notes\n");
  assert.is(hashInputs(root, {}), before);
});

const stamp: Stamp = {
  inputs: "abc",
  backend: "cpu",
  chosen: false,
  options: "",
  source: "",
  llamaCpp: "0.5.0",
  napi: "9",
  seconds: 1,
  bytes: 5,
  date: "2026-01-01T00:00:00.000Z",
};

test("a build is current only with the same inputs and an addon of the stamped size", ({ root }) => {
  const addon = join(root, "tapline.node");
  assert.is(isCurrent(stamp, "abc", addon), false, "no addon");
  writeFileSync(addon, "12345");
  assert.is(isCurrent(stamp, "abc", addon), true);
  assert.is(isCurrent(stamp, "abd", addon), false, "other inputs");
  assert.is(isCurrent(undefined, "abc", addon), false, "no stamp");
  writeFileSync(addon, "123");
  assert.is(isCurrent(stamp, "abc", addon), false, "half an addon");
});

test("a stamp is read back as written; a broken one counts as absent", ({ root }) => {
  const file = join(root, "stamp.json");
  assert.is(readStamp(file), undefined);
  writeStamp(file, stamp);
  assert.equal(readStamp(file), stamp);
  writeFileSync(file, '{"inputs":');
  assert.is(readStamp(file), undefined);
  writeFileSync(file, "null");
  assert.is(readStamp(file), undefined);
});

test("options of the last build hold until they are set again", () => {
  const last = { ...stamp, options: "GGML_NATIVE=OFF", source: "/llama" };
  assert.equal(choices({}, undefined), { options: "", source: "", flags: {} });
  assert.equal(choices({}, last), { options: "GGML_NATIVE=OFF", source: "/llama", flags: {} });
  assert.equal(choices({ TAPLINE_CMAKE_OPTIONS: "", LLAMA_CPP_DIR: "/other" }, last), {
    options: "",
    source: "/other",
    flags: {},
  });
  const optimised = { ...last, flags: { CXXFLAGS: "-O1" } };
  assert.equal(choices({ CC: "clang" }, optimised).flags, { CXXFLAGS: "-O1", CC: "clang" });
  assert.equal(choices({ CXXFLAGS: "" }, optimised).flags, { CXXFLAGS: "" });
});

test("the processor has a short, stable name", () => {
  assert.match(processorId(), /^[0-9a-f]{12}$/);
  assert.is(processorId(), processorId());
});

test.run();
