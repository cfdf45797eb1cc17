/** Two sets of object files from the same sources, compiled with different numbers, in one program. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { definedNames, renamed } from "../../scripts/build/rename.js";
import { saying } from "../support/saying.js";

const program = fileURLToPath(new URL("../../scripts/build/rename.js", import.meta.url));
const onLinux = process.platform === "linux";
const test = suite<{ folder: string; objects: Record<string, string[]> }>("rename");

const sources: Record<string, string> = {
  // An inline function and a static number of it, of which a linker keeps one; a group named like a constructor.
  "a.cpp": `struct Thing { int x; Thing(int n); virtual ~Thing() {} };
    inline Thing::Thing(int n) : x(n) {}
    inline int shared() { static int calls = 0; return FACTOR * 100 + ++calls; }
    int helper(int x);
    extern "C" int entry() { Thing thing(shared()); return helper(thing.x); }`,
  "b.cpp": `inline int shared() { static int calls = 0; return FACTOR * 100 + ++calls; }
    extern "C" int outside(int);
    int helper(int x) { return outside(x) + 10 * shared(); }`,
  "main.cpp": `#include <cstdio>
    extern "C" int two__entry(); extern "C" int three__entry();
    extern "C" int outside(int x) { return -x; }
    int main() { int a = two__entry(), b = three__entry(), c = two__entry(); std::printf("%d %d %d", a, b, c); }`,
};

test.before((context) => {
  context.folder = mkdtempSync(join(os.tmpdir(), "tapline-rename-"));
  context.objects = {};
  if (!onLinux) return;
  for (const [name, text] of Object.entries(sources)) writeFileSync(join(context.folder, name), text);
  for (const [name, factor] of Object.entries({ two: 2, three: 3 })) {
    context.objects[name] = ["a", "b"].map((source) => {
      const object = join(context.folder, `${name}-${source}.o`);
      const args = ["-O1", "-fno-inline", "-ffunction-sections", `-DFACTOR=${factor}`, "-c"];
      execFileSync("c++", [...args, join(context.folder, `${source}.cpp`), "-o", object]);
      return object;
    });
  }
});
test.after(({ folder }) => rmSync(folder, { recursive: true, force: true }));

(onLinux ? test : test.skip)("each set calls its own functions, and shared ones by name", (context) => {
  const { folder, objects } = context;
  const archives = Object.entries(objects).map(([name, paths]) => {
    const archive = join(folder, `${name}.a`);
    execFileSync(process.execPath, [program, `${name}__`, "ar", archive, ...paths]);
    return archive;
  });
  const out = join(folder, "program");
  execFileSync("c++", [join(folder, "main.cpp"), ...archives, "-o", out]);
  // By hand: 10 * the second call's number - the first one's; the numbers of calls go on in the third.
  assert.is(execFileSync(out, { encoding: "utf8" }), `${10 * 202 - 201} ${10 * 302 - 301} ${10 * 204 - 203}`);
  const listed = execFileSync("nm", ["--defined-only", "--extern-only", archives[0]!], { encoding: "utf8" });
  const names = [...listed.matchAll(/^[\da-f]+ \S (\S+)$/gm)].map((match) => match[1]);
  assert.ok(names.length >= 5, listed);
  assert.equal(
    names.filter((name) => !name!.startsWith("two__")),
    [],
  );
});

(onLinux ? test : test.skip)("names that no file of the set defines stay", ({ objects }) => {
  const files = objects.two!.map((path) => readFileSync(path));
  const names = definedNames(files, objects.two!);
  assert.ok(names.has("entry") && names.has("_Z6helperi") && names.has("_Z6sharedv"));
  assert.not.ok(names.has("outside"));
  const file = renamed(files[1]!, "two__", names, "b.o").toString("latin1");
  assert.ok(file.includes("\0two___Z6helperi\0"));
  assert.not.ok(file.includes("two__outside"));
});

test("a file that is no object file is refused by name", () => {
  assert.throws(
    () => definedNames([Buffer.from("!<arch>\nsome text")], ["libx.a"]),
    saying("libx.a is not a 64-bit little-endian ELF file."),
  );
});

test.run();
