import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";

const root = fileURLToPath(new URL("../..", import.meta.url));
const src = join(root, "src");

/** Which folders of src/ each folder may import from, beside itself. */
const arrows: Record<string, string[]> = {
  contracts: ["text"],
  files: [],
  findings: ["contracts", "text"],
  formats: [],
  markup: [],
  native: [],
  text: [],
  models: ["contracts", "files", "formats"],
  http: ["contracts", "markup"],
  library: ["contracts", "files", "findings", "formats", "http", "models", "native"],
  submit: ["contracts", "files", "formats", "lab", "text"],
  lab: ["contracts", "files", "findings", "formats", "http", "library", "models", "native", "text"],
  executions: ["contracts", "http"],
  inference: ["contracts", "executions", "files", "formats", "http", "library", "models", "native", "text"],
  router: ["contracts", "executions", "http"],
  studies: ["contracts", "findings", "http", "markup", "report", "text"],
  client: ["contracts", "formats", "text"],
  mcp: ["client", "contracts", "text"],
  terminal: ["contracts", "findings", "text"],
  report: ["contracts", "findings", "markup", "text"],
  card: ["client", "contracts", "files", "findings", "formats", "report", "study", "text"],
  check: ["card", "client", "contracts", "findings", "formats", "library", "native"],
  study: ["contracts", "findings", "report", "text"],
  recipe: [
    "client",
    "contracts",
    "findings",
    "library",
    "markup",
    "models",
    "native",
    "quants",
    "report",
    "study",
    "text",
  ],
  quants: [
    "card",
    "client",
    "contracts",
    "files",
    "findings",
    "formats",
    "library",
    "models",
    "native",
    "report",
    "study",
    "text",
  ],
  verify: ["contracts", "files", "formats", "native"],
  workbench: [
    "client",
    "contracts",
    "findings",
    "formats",
    "http",
    "models",
    "report",
    "study",
    "terminal",
    "text",
  ],
  cli: [
    "card",
    "check",
    "client",
    "contracts",
    "files",
    "findings",
    "inference",
    "lab",
    "library",
    "mcp",
    "models",
    "native",
    "quants",
    "recipe",
    "report",
    "router",
    "studies",
    "study",
    "submit",
    "terminal",
    "text",
    "verify",
    "workbench",
  ],
};

/** The same for native/; llama.cpp's headers belong to no folder. */
const nativeArrows: Record<string, string[]> = {
  base: [],
  model: ["base"],
  capture: ["base", "model"],
  graph: ["base", "capture", "dictionaries", "model", "numbers"],
  experiment: ["armed", "base", "capture", "dictionaries", "graph", "model"],
  numbers: ["base"],
  probes: ["base", "numbers"],
  dictionaries: ["base", "numbers"],
  products: [],
  ends: [],
  armed: ["base", "capture", "ends", "model"],
  levels: [],
  engine: ["armed", "base", "capture", "experiment", "model"],
  napi: ["base", "dictionaries", "engine", "experiment", "levels", "model", "numbers", "probes"],
};

function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => join(folder, name));
}

/** In operations/ a file's first word names its part, both in an operation's folder and next to it. */
const roomsOfOperations: Record<string, string> = {
  contract: "contracts",
  contracts: "contracts",
  check: "contracts",
  run: "lab",
  runs: "lab",
  words: "report",
  figures: "report",
  picture: "terminal",
  pictures: "terminal",
  command: "cli",
  commands: "cli",
};

/** Whose arrows a file of src/ follows. */
function roomOf(file: string): string {
  const [folder, ...rest] = relative(src, file).split(/[\\/]/) as [string, ...string[]];
  if (folder !== "operations") return folder;
  const word = /^([a-z]+)(?:-[a-z-]+)?\.[jt]s$/.exec(rest.at(-1) as string)?.[1] ?? "";
  return roomsOfOperations[word] ?? `operations/${rest.join("/")}`;
}

/** Files of src/ that a file imports from, as they are named there. */
function imported(file: string): string[] {
  const text = readFileSync(file, "utf8");
  return [...text.matchAll(/(?:from|import\()\s*"(\.[^"]*)"/g)]
    .map(([, path]) => resolve(dirname(file), path as string))
    .filter((path) => path.startsWith(src));
}

/** A circle of imports, types included, if the files have one: its files, the first one at both ends. */
function circleOf(files: readonly string[], importedBy: (file: string) => string[]): string[] | undefined {
  const done = new Set<string>();
  const visit = (file: string, path: string[]): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return undefined;
    for (const next of importedBy(file)) {
      const circle = visit(next, [...path, file]);
      if (circle !== undefined) return circle;
    }
    done.add(file);
    return undefined;
  };
  for (const file of files) {
    const circle = visit(file, []);
    if (circle !== undefined) return circle;
  }
  return undefined;
}

test("every folder of src/ has its arrows, and imports follow them", () => {
  const seen = new Set<string>();
  for (const file of sources(src)) {
    const room = roomOf(file);
    seen.add(room);
    const allowed = arrows[room];
    assert.ok(allowed, `${room} has no arrows; add it here and to docs/architecture.md`);
    for (const other of imported(file).map(roomOf)) {
      assert.ok(other === room || allowed.includes(other), `${relative(root, file)} imports from ${other}`);
    }
  }
  assert.equal([...seen].sort(), Object.keys(arrows).sort());
});

test("no files of src/ import each other in a circle, types included", () => {
  const files = new Set(sources(src));
  const sourceOf = (path: string) =>
    [path, path.replace(/\.js$/, ".ts"), path.replace(/\.js$/, ".tsx")].find((name) => files.has(name));
  const importedBy = (file: string) => imported(file).flatMap((path) => sourceOf(path) ?? []);
  assert.equal(circleOf([...files], importedBy), undefined);
  const drawn: Record<string, string[]> = { a: ["b"], b: ["c"], c: ["d", "b"], d: [] };
  assert.equal(
    circleOf(["a", "b", "c", "d"], (file) => drawn[file] as string[]),
    ["b", "c", "b"],
  );
});

test("native/ includes along its arrows, and only napi/ knows JavaScript", () => {
  const native = join(root, "native");
  for (const [folder, allowed] of Object.entries(nativeArrows)) {
    for (const name of readdirSync(join(native, folder), { recursive: true, encoding: "utf8" })) {
      if (!/\.(cpp|h)$/.test(name)) continue;
      const text = readFileSync(join(native, folder, name), "utf8");
      for (const [, included] of text.matchAll(/#include "(?:\.\.\/)?([a-z]+)\//g)) {
        const known = included === folder || !(included! in nativeArrows) || allowed.includes(included!);
        assert.ok(known, `native/${folder}/${name} includes from ${included}/`);
      }
      if (folder !== "napi") assert.not.match(text, /#include [<"](napi|node_api|js_native_api|uv)\.h/, name);
    }
  }
});

test("the page names every folder, and every file that it names exists", () => {
  const page = readFileSync(join(root, "docs/architecture.md"), "utf8");
  const house = /```text\n(native[\s\S]*?)```/.exec(page)?.[1] ?? "";
  const drawn = (parent: string) => {
    const lines = house.split("\n");
    const start = lines.findIndex((line) => line.startsWith(`${parent}/`));
    const rest = lines.slice(start + 1);
    const end = rest.findIndex((line) => /^\S/.test(line));
    return rest.slice(0, end).flatMap((line) => /^ {2}([a-z]+)\/ /.exec(line)?.[1] ?? []);
  };
  const folders = (parent: string) =>
    readdirSync(join(root, parent), { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && readdirSync(join(root, parent, entry.name)).length > 0)
      .map(({ name }) => name);
  for (const parent of ["src", "native"]) {
    assert.equal(drawn(parent).sort(), folders(parent).sort(), parent);
  }
  const named = /`([\w./-]+\.(?:ts|js|cpp|h))`/g;
  const path: string[] = [];
  for (const line of house.split("\n")) {
    const [, indent, folder] = /^( *)(\S+)\/( {2}|$)/.exec(line) ?? [];
    if (folder !== undefined) path.splice((indent as string).length / 2, path.length, folder);
    for (const [, file] of line.matchAll(named)) {
      assert.ok(existsSync(join(root, ...path, file as string)), `${path.join("/")}: ${file}`);
    }
  }
  const files = [...page.replace(house, "").matchAll(named)].map(([, file]) => file as string);
  assert.ok(files.length > 8);
  const everywhere = ["", "src", "src/operations", "src/operations/compare", "native/capture", "native"];
  for (const file of files) {
    assert.ok(
      everywhere.some((folder) => existsSync(join(root, folder, file))),
      file,
    );
  }
});

test("the glossary's terms are defined where it says", () => {
  const glossary = readFileSync(join(root, "native/README.md"), "utf8");
  const rows = [...glossary.matchAll(/^\| ([a-z -]+) \| (.+) \| `([\w./]+)` \|$/gm)];
  assert.ok(rows.length >= 20 && rows.length <= 30, `${rows.length} words`);
  for (const [, word, , file] of rows) assert.ok(existsSync(join(root, "native", file!)), `${word}: ${file}`);
});

test.run();
