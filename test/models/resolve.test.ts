import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { UserError } from "../../src/contracts/index.js";
import { demoModelPath, resolveModel } from "../../src/models/resolve.js";

let root: string;
test.before.each(async () => {
  root = await mkdtemp(join(tmpdir(), "tapline-models-"));
});
test.after.each(() => rm(root, { recursive: true, force: true }));

/** Makes a directory with the given files; those named .gguf begin as a GGUF does. */
async function folder(name: string, files: string[]): Promise<string> {
  const path = join(root, name);
  await mkdir(path);
  for (const file of files) await writeFile(join(path, file), file.endsWith(".gguf") ? "GGUF...." : "x");
  return path;
}

async function fault(model: string): Promise<string> {
  try {
    await resolveModel(model);
  } catch (error) {
    assert.instance(error, UserError);
    assert.ok((error as Error).message.endsWith("."), (error as Error).message);
    return (error as Error).message;
  }
  return assert.unreachable("it resolved") as never;
}

test("demo is the embedded model", async () => {
  const { path, repository, commit, weights } = await resolveModel("demo");
  assert.is(path, demoModelPath);
  assert.is(repository, null);
  assert.is(commit, null);
  assert.is(weights[0]?.bytes, (await stat(demoModelPath)).size);
});

test("a file, by absolute and by relative path", async () => {
  const path = join(await folder("a", ["model.gguf"]), "model.gguf");
  const resolved = await resolveModel(path);
  assert.is(resolved.path, path);
  const { mtimeNs } = await stat(path, { bigint: true });
  assert.equal(resolved.weights, [{ name: "model.gguf", bytes: 8, modified_ns: String(mtimeNs) }]);
  const cwd = process.cwd();
  process.chdir(root);
  assert.is((await resolveModel("a/model.gguf")).weights[0]?.name, "model.gguf");
  process.chdir(cwd);
});

test("the ending of a file may be in any case", async () => {
  const path = join(await folder("capitals", []), "MODEL.GGUF");
  await writeFile(path, "GGUF....");
  assert.is((await resolveModel(path)).path, path);
  assert.is((await resolveModel(join(root, "capitals"))).path, path);
});

test("a directory with one model, whatever else lies in it", async () => {
  const path = await folder("b", ["model.gguf", "mmproj-model.gguf", "README.md", "config.json"]);
  assert.is((await resolveModel(path)).path, join(path, "model.gguf"));
});

test("a split set opens by its folder or any part, with all parts as weights", async () => {
  const parts = [1, 2, 3].map((part) => `big-0000${part}-of-00003.gguf`);
  const path = await folder("c", [...parts].reverse());
  for (const model of [path, join(path, parts[0] as string), join(path, parts[2] as string)]) {
    const resolved = await resolveModel(model);
    assert.is(resolved.path, join(path, parts[0] as string));
    assert.equal(
      resolved.weights.map(({ name }) => name),
      parts,
    );
  }
});

test("what is missing of a split set is named", async () => {
  const path = await folder("d", ["big-00002-of-00003.gguf"]);
  assert.match(await fault(path), " lacks big-00001-of-00003.gguf, big-00003-of-00003.gguf.");
  const many = await folder("many", ["big-00002-of-99999.gguf"]);
  assert.match(await fault(many), "-00004-of-99999.gguf and 99995 more.");
});

test("several models: the error lists them", async () => {
  const path = await folder("e", [
    "q4.gguf",
    "q8.gguf",
    "big-00001-of-00002.gguf",
    "big-00002-of-00002.gguf",
  ]);
  assert.match(
    await fault(path),
    "contains 3 models; choose one: big-00001-of-00002.gguf, q4.gguf, q8.gguf.",
  );
});

test("safetensors only: the error names the converter", async () => {
  assert.match(await fault(await folder("f", ["model.safetensors"])), "convert_hf_to_gguf.py");
});

test("what is no model", async () => {
  assert.match(await fault(await folder("g", [])), "contains no .gguf file");
  assert.match(await fault(join(await folder("h", ["notes.txt"]), "notes.txt")), "is not a .gguf file");
  assert.match(await fault(join(root, "none.gguf")), "No model found at");
  assert.match(await fault("no such"), "No model found at no such.");
  assert.match(await fault("a\0b"), "NUL");
  assert.match(await fault(`/${"x".repeat(4000)}`), "too long for this system");
  if (process.platform !== "win32") assert.match(await fault("/dev/null"), "neither a file nor a directory");
  const text = await folder("i", []);
  await writeFile(join(text, "fake.gguf"), "<!doctype html>");
  assert.match(await fault(text), "is not a GGUF file");
  assert.is(await fault(""), "The model name is empty.");
});

if (process.platform !== "win32") {
  test("what has a model's name and is none", async () => {
    const inside = async (name: string) => join(await folder(name, []), "model.gguf");
    const circle = await inside("circle");
    await symlink("model.gguf", circle);
    const nowhere = await inside("nowhere");
    await symlink("gone.gguf", nowhere);
    const directory = await inside("directory");
    await mkdir(directory);
    const pipe = await inside("pipe");
    execFileSync("mkfifo", [pipe]);
    for (const [path, told, toldOfFolder] of [
      [circle, "is a cyclic symbolic link", "is a cyclic symbolic link"],
      [nowhere, "No model found at", "No model found at"],
      [directory, "contains no .gguf file", "is not a file"],
      [pipe, "is neither a file nor a directory", "is not a file"],
    ] as const) {
      assert.match(await fault(path), told);
      assert.match(await fault(dirname(path)), toldOfFolder);
    }
  });
}

test.run();
