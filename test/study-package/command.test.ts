/** `tapline study package` from the outside: a Lab, an editor, and the real studies service. */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { StudyPackage } from "../../src/contracts/studies/index.js";
import { checkPackage } from "../../src/studies/text/check-package.js";
import { parseStrictJson } from "../../src/studies/text/strict-json.js";
import { tapline } from "../cli/run.js";
import { type ResearchService, startResearch } from "../client/research-service.js";
import { startServer } from "../inference/support/serving.js";
import { demoInspect, type Harness, openHarness } from "../lab/harness.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-package-"));
let lab: Harness;
let research: ResearchService;
let id: string;

test.before(async () => {
  [lab, research] = await Promise.all([openHarness(), startResearch({ seedData: false })]);
  id = (await lab.finished((await lab.submit(demoInspect)).id)).id;
});
test.after(async () => {
  await Promise.all([lab.close(), research.close()]);
  rmSync(folder, { recursive: true, force: true });
});

const run = (words: string[], env: Record<string, string> = {}, input = "") =>
  tapline(["study", "package", ...words], {
    cwd: folder,
    env: { TMPDIR: folder, VISUAL: "", EDITOR: "", ...env },
    input,
  });

const said = ["--question", "Where?", "--limitations", "One model.", "--license", "CC0-1.0", "--no-edit"];

const read = (name: string): StudyPackage => checkPackage(parseStrictJson(readFileSync(join(folder, name))));

/** An editor that runs a program on the file. */
function editor(name: string, program: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/usr/bin/env node\n${program}\n`);
  chmodSync(path, 0o755);
  return path;
}

test("with words from flags: written, and saved as a private draft with these bytes", async () => {
  const token = await research.token();
  const { code, stdout, stderr } = await run(
    ["--job", "last", "--lab", lab.lab.url, "--title", "By flags", ...said, "--draft", "--out", "flags.json"],
    research.environment(token),
  );
  assert.is(code, 0, stderr);
  assert.match(
    stdout,
    /^Saved flags\.json \(\d+ entr(?:y|ies), \d+ bytes, \d+ omissions?\)\nSaved as private draft \S+\.\nReview and publish it at https:\/\/localhost:\d+\/drafts\/\S+\n$/,
  );
  assert.is(read("flags.json").title, "By flags");
  assert.match(read("flags.json").method, /inspect: norms, logit lens/);
  const draft = /draft (\S+)\./.exec(stdout)?.[1] as string;
  const got = await tapline(["study", "get", draft, "--json"], { env: research.environment(token) });
  assert.equal(JSON.parse(got.stdout).package, JSON.parse(readFileSync(join(folder, "flags.json"), "utf8")));
  assert.is(JSON.parse(got.stdout).visibility, "private_draft");
});

test("the editor opens until the package is one, with the sentences on top", async () => {
  const seen = join(folder, "seen.txt");
  const path = editor(
    "writer.mjs",
    `import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
     const [file] = process.argv.slice(-1);
     const text = readFileSync(file, "utf8");
     const first = !existsSync(${JSON.stringify(seen)});
     appendFileSync(${JSON.stringify(seen)}, text + "=====");
     const fill = (name, words) => (all) => all.replace(new RegExp("(# " + name + "\\\\n<!--.*-->\\\\n)"), "$1" + words + "\\n");
     const steps = first ? [fill("Question", "Where?"), fill("License", "MIT")] : [fill("Limitations", "One model."), (all) => all.replace("MIT", "CC-BY-4.0")];
     writeFileSync(file, steps.reduce((all, step) => step(all), text));`,
  );
  const { code, stderr } = await run(["--job", id.slice(0, 8), "--lab", lab.lab.url, "--title", "By hand"], {
    VISUAL: `${path} --wait`,
  });
  assert.is(code, 0, stderr);
  const [before, after, more] = readFileSync(seen, "utf8").split("=====");
  assert.not.match(before as string, "<!-- !");
  assert.match(
    after as string,
    "<!-- ! limitations must not be blank. -->\n<!-- ! license must be CC-BY-4.0 or CC0-1.0. -->",
  );
  assert.is(more, "", "opened twice");
  const study = read("tapline-study.json");
  assert.equal([study.title, study.question, study.license], ["By hand", "Where?", "CC-BY-4.0"]);
  assert.equal(
    readdirSync(folder).filter((name) => name.startsWith("tapline-study-")),
    [],
    "the words are not left behind",
  );
});

test("giving up: an emptied file, an unchanged one, an editor that fails", async () => {
  const empty = editor(
    "empty.mjs",
    'import { writeFileSync } from "node:fs"; writeFileSync(process.argv.at(-1), "");',
  );
  const emptied = await run(["--job", id, "--lab", lab.lab.url], { EDITOR: empty });
  assert.equal([emptied.code, emptied.stderr], [1, "tapline: The file is empty; no package was created.\n"]);

  const kept = await run(["--job", id, "--lab", lab.lab.url, "--title", "Kept", "--omission", "first"], {
    VISUAL: "true",
  });
  assert.is(kept.code, 1);
  const file = /saved in (\S+);/.exec(kept.stderr)?.[1] as string;
  const more = ["--omission", "second", "--out", "-"];
  const again = await run(["--job", id, "--lab", lab.lab.url, "--words", file, ...said, ...more]);
  assert.is(again.code, 0, again.stderr);
  const { title, omissions } = JSON.parse(again.stdout) as StudyPackage;
  assert.equal([title, omissions.slice(0, 2)], ["Kept", ["first", "second"]]);

  const failed = await run(["--job", id, "--lab", lab.lab.url], { VISUAL: "exit 7; true" });
  assert.match(failed.stderr, /The editor \(exit 7; true\) exited with 7\. Your text is saved/);
  const none = await run(["--job", id, "--lab", lab.lab.url]);
  assert.match(none.stderr, /No terminal or editor/);
});

test("missing parts are reported before anything is written or sent", async () => {
  const nothing = await run([...said]);
  assert.equal(
    [nothing.code, nothing.stderr],
    [2, "tapline: At least one job (--job), request (--execution) or card (--card) is required.\n"],
  );
  const blank = await run(["--job", id, "--lab", lab.lab.url, "--no-edit", "--draft"]);
  assert.is(blank.code, 2);
  assert.match(blank.stderr, /incomplete: title must not be blank\. question must not be blank\./);
  const unknown = await run(["--job", "f".repeat(32), "--lab", lab.lab.url, ...said]);
  assert.is(unknown.code, 1);
});

test("a draft that cannot be saved leaves the package in a file", async () => {
  const token = await research.token(["public:read"]);
  const { code, stderr } = await run(
    ["--job", id, "--lab", lab.lab.url, "--title", "Refused", ...said, "--draft"],
    research.environment(token),
  );
  assert.is(code, 1);
  assert.match(stderr, /The package is saved in tapline-study\.json/);
  assert.is(read("tapline-study.json").title, "Refused");
});

test("requests of a serving model", async () => {
  const server = await startServer();
  try {
    const port = Number(new URL(server.url).port);
    const { ServingModel } = await import("../../src/client/index.js");
    const question = [{ role: "user" as const, content: "What is the capital of France?" }];
    for await (const _ of new ServingModel(port).chat(question, {
      request: { temperature: 0, seed: 1, max_tokens: 64 },
    }));
    const { code, stderr } = await run([
      "--execution",
      "last",
      "--url",
      server.url,
      "--title",
      "Asked",
      ...said,
      "--out",
      "asked.json",
    ]);
    assert.is(code, 0, stderr);
    const [entry] = read("asked.json").entries;
    assert.is(entry?.prompt, "What is the capital of France?");
    assert.match(entry?.answer as string, "Paris");
  } finally {
    await server.close();
  }
});

test.run();
