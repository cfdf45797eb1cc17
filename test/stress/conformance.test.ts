import { spawnSync } from "node:child_process";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { program } from "../support/program.js";
import { pythonWith } from "../support/python.js";
import { temporaryFolder } from "../support/temporary.js";

/** The conformance suite asks tapline; then adapters with planted faults, which it must call wrong. */

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = temporaryFolder("conformance");
const models = join(folder, "models");
const python = pythonWith("numpy");
const check = python === undefined ? test.skip : test;

interface Answers {
  questions: Record<string, Record<string, { answer: string; why?: string }>>;
}

function runPython(words: readonly string[]): void {
  const env = {
    ...process.env,
    TAPLINE_COMMAND: [process.execPath, ...program].join(" "),
    OMP_NUM_THREADS: "1",
  };
  const { status, stdout, stderr } = spawnSync(python as string, words, { encoding: "utf8", cwd: root, env });
  assert.is(status, 0, stdout + stderr);
}

/** Answers to some questions, by the suite in a folder. */
function ask(suite: string, questions: readonly string[], name?: string): Answers["questions"] {
  const file = join(folder, "answers.json");
  const only = questions.flatMap((question) => ["--only", question]);
  if (name !== undefined) only.push("--case", name);
  runPython([join(suite, "ask.py"), "tapline", models, file, ...only]);
  return (JSON.parse(readFileSync(file, "utf8")) as Answers).questions;
}

/** The cases that are not right. */
function wrong(answers: Answers["questions"][string] | undefined): string[] {
  return Object.entries(answers ?? {}).flatMap(([name, { answer }]) => (answer === "right" ? [] : [name]));
}

check("the models are written as they were recorded", () => {
  runPython([join(root, "conformance/prepare.py"), models]);
});

const questions = [
  "Block outputs",
  "Edits",
  "Isolation in a batch",
  "Caches",
  "Padding",
  "Attention weights",
];

check("tapline answers right and reports every mistake", () => {
  const found = ask(join(root, "conformance"), [...questions, "Mistakes are reported"]);
  assert.is(Object.keys(found["Mistakes are reported"] ?? {}).length, 9);
  for (const question of [...questions, "Mistakes are reported"]) {
    assert.equal(wrong(found[question]), [], question);
  }
});

/** A fault in the adapter: what is replaced by what, the question that must see it, and one of its cases. */
const faults: Record<string, [from: string, to: string, question: string, seen: string]> = {
  "edits of one text act on all": [
    ', "sequences": [edit.text]}',
    "}",
    "Isolation in a batch",
    "an edit of all positions of one text in a batch",
  ],
  "positions are ignored": [
    "if edit.positions is not None:",
    "if False:",
    "Edits",
    "llama: patch at attn_out, block 2, the first position",
  ],
  "an edit acts one block too late": [
    '"at": f"{edit.point}.{edit.layer}"',
    '"at": f"{edit.point}.{min(edit.layer + 1, 3)}"',
    "Edits",
    "llama: scale at ffn_out, block 1, positions 3 to 5",
  ],
  "the sign of a factor is lost": [
    '"strength": edit.factor',
    '"strength": abs(edit.factor)',
    "Edits",
    "gemma3: scale at block_out, block 1, positions 3 to 5",
  ],
  "edits are left out of generation": [
    "if not edits:",
    "if True:",
    "Caches",
    "an edited text continues from its own cache",
  ],
  "refusals are swallowed": [
    'raise RuntimeError(f"{error.code}',
    'return b"{}"  # (f"{error.code}',
    "Mistakes are reported",
    "a block that does not exist",
  ],
};

for (const [name, [from, to, question, seen]] of Object.entries(faults)) {
  check(`a planted fault is seen: ${name}`, () => {
    const suite = join(folder, "suite");
    rmSync(suite, { recursive: true, force: true });
    cpSync(join(root, "conformance"), suite, { recursive: true });
    const adapter = join(suite, "engines/tapline.py");
    const source = readFileSync(adapter, "utf8");
    assert.ok(source.includes(from), `the adapter has no ${from}`);
    writeFileSync(adapter, source.replaceAll(from, to));
    assert.ok(wrong(ask(suite, [question], seen)[question]).includes(seen));
  });
}

check("the page is the one that the saved answers make", () => {
  const page = join(folder, "page.md");
  runPython([join(root, "conformance/run.py"), "--keep", "--table", page]);
  const committed = readFileSync(join(root, "docs/conformance.md"), "utf8");
  assert.is(readFileSync(page, "utf8"), committed);
  const table = /^\| \|(?:.*\n)+?\n/m.exec(committed)?.[0] as string;
  assert.ok(readFileSync(join(root, "README.md"), "utf8").includes(table), "README has another table");
});

test.run();
