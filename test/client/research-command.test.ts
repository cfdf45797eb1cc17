import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command, CommanderError } from "commander";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { registerStudy } from "../../src/cli/commands/study.js";
import { exitCodeOf, sentenceOf } from "../../src/cli/exit-code.js";
import type { Discussion, StudyPage } from "../../src/contracts/studies/index.js";
import { samplePackage } from "../studies/support/packages.js";
import { program } from "../support/program.js";
import { type HostileService, startHostile } from "./research-hostile.js";
import { type ResearchService, startResearch } from "./research-service.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-study-"));

let service: ResearchService;
let hostile: HostileService;
let token: string;
test.before(async () => {
  [service, hostile] = await Promise.all([startResearch(), startHostile()]);
  token = await service.token();
});
test.after(async () => {
  await Promise.all([service.close(), hostile.close()]);
  rmSync(folder, { recursive: true, force: true });
});

async function tapline(words: string[], environment: Record<string, string> = {}, stdin = "") {
  const child = spawn(process.execPath, [...program, ...words], {
    env: { ...process.env, ...service.environment(token), ...environment },
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (part) => {
    stdout += part;
  });
  child.stderr.on("data", (part) => {
    stderr += part;
  });
  child.stdin.end(stdin);
  const [code] = await once(child, "close");
  assert.not.match(stdout + stderr, token);
  return { code: code as number, stdout, stderr };
}

/** The same within this process, for what does not depend on one: much faster. */
async function inProcess(words: string[], environment: Record<string, string> = {}, width = 80) {
  const before = { ...process.env };
  Object.assign(
    process.env,
    service.environment(token),
    { NO_COLOR: "1", COLUMNS: String(width) },
    environment,
  );
  const { write } = process.stdout;
  let [stdout, stderr] = ["", ""];
  const capture = (text: string | Uint8Array, done?: unknown) => {
    stdout += text;
    if (typeof done === "function") done();
    return true;
  };
  process.stdout.write = capture as typeof write;
  let code = 0;
  try {
    const program = new Command("tapline").exitOverride().configureOutput({
      writeErr: (text) => {
        stderr += text;
      },
    });
    registerStudy(program);
    await program.parseAsync(words, { from: "user" });
  } catch (error) {
    code = exitCodeOf(error);
    if (!(error instanceof CommanderError)) stderr += `tapline: ${sentenceOf(error)}\n`;
  } finally {
    process.stdout.write = write;
    for (const name of Object.keys(process.env)) delete process.env[name];
    Object.assign(process.env, before);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.removeAllListeners(signal);
  }
  assert.not.match(stdout + stderr, token);
  return { code, stdout, stderr };
}

test("list: for people, in colour or not, and for programs", async () => {
  const plain = await inProcess(["study", "list", "--limit", "2"]);
  assert.is(plain.code, 0);
  assert.not.match(plain.stdout, "\u001b");
  assert.match(plain.stdout, /^1 to 2 of 6; --offset 2 shows more$/m);
  assert.ok(plain.stdout.split("\n").every((line) => line.length <= 80));
  const colored = await inProcess(["study", "list", "--limit", "1"], { FORCE_COLOR: "1" });
  assert.match(colored.stdout, "\u001b[1m");
  const { stdout } = await tapline(["study", "list", "steers", "polite", "--json"]);
  const page = JSON.parse(stdout) as StudyPage;
  assert.is(page.total, 1);
  const none = await inProcess(["study", "list", "xyzzy"]);
  assert.equal([none.code, none.stdout], [0, "No studies.\n"]);
});

test("get: one version; what was taken down is told with its reason", async () => {
  const id = await service.publish(samplePackage({ title: "Once" }), ["Said."]);
  const first = await inProcess(["study", "get", id, "--version-number", "1"]);
  assert.equal([first.code, first.stdout.split("\n")[0]], [0, "Once"]);
  const both = await inProcess(["study", "get", id, "--version-number", "1", "--discussion"]);
  assert.match(
    both.stderr,
    "--discussion and --version-number cannot be combined: a discussion covers all versions.",
  );
  await service.takeDown(id, "Copied \u001b[2J from a book.");
  const gone = await inProcess(["study", "get", id]);
  assert.is(gone.code, 1);
  assert.match(gone.stderr, /removed by a moderator on \S+ Reason: Copied {2}\[2J from a book\.$/m);
});

test("get: text that would command a terminal is shown, and JSON is exact", async () => {
  const note = "\u001b]0;owned\u0007 \u009b31m \u202egnp\u202c \u{e0041}\r\n\tline two \u200b";
  const study = samplePackage({ title: "Careful \u001b[2J", omissions: ["the prompts"] });
  const [first] = study.entries as [(typeof study.entries)[0]];
  study.entries.push({
    id: "00000000-0000-4000-8000-000000000001",
    parent: first.id,
    kind: "note",
    title: "n",
    note,
    settings: { temperature: 0, seed: 1, maxTokens: 5, thinking: "off" },
  });
  const id = await service.publish(study, ["A comment \u001b[31m"]);
  const shown = await inProcess(["study", "get", id]);
  assert.is(shown.code, 0, shown.stderr);
  assert.not.match(shown.stdout, /[^\P{C}\n]/u);
  assert.match(shown.stdout, "<U+001B>]0;owned<U+0007>");
  assert.match(shown.stdout, "<U+202E>gnp<U+202C> <U+E0041>");
  assert.match(shown.stdout, /^ {4}note: .*$/m, "below its parent");
  const json = await inProcess(["study", "get", id, "--json"]);
  assert.not.match(json.stdout, /[^\P{C}\n]/u);
  assert.equal(JSON.parse(json.stdout).package, study);
  const comments = await inProcess(["study", "get", id, "--discussion"]);
  assert.match(comments.stdout, "1 comment, 0 upvotes");
  assert.match(comments.stdout, "A comment <U+001B>[31m");
  const whole = await inProcess(["study", "get", id, "--discussion", "--json"]);
  assert.is((JSON.parse(whole.stdout) as Discussion).comments.length, 1);
});

test("draft: from a file and from standard input; the same key makes no second one", async () => {
  const path = join(folder, "package.json");
  writeFileSync(path, JSON.stringify(samplePackage(), null, 4));
  const saved = await tapline(["study", "draft", path, "--key", "k1"]);
  assert.is(saved.code, 0, saved.stderr);
  const [, id] = /^Saved as private draft (\S+)\.$/m.exec(saved.stdout) as unknown as [string, string];
  assert.match(saved.stdout, `Review and publish it at ${service.origin}/drafts/${id}`);
  const again = await inProcess(["study", "draft", path, "--key", "k1", "--json"]);
  assert.is(JSON.parse(again.stdout).id, id);
  const piped = await tapline(["study", "draft", "-", "--json"], {}, JSON.stringify(samplePackage()));
  assert.is.not(JSON.parse(piped.stdout).id, id);
});

test("exit codes: 2 for bad input, 3 if unreachable, 1 for a refusal", async () => {
  const absent = "00000000-0000-0000-0000-000000000000";
  const invalid = join(folder, "invalid.json");
  writeFileSync(invalid, JSON.stringify({ ...samplePackage(), title: " " }));
  const large = join(folder, "large.json");
  writeFileSync(large, " ".repeat(1_000_001));
  hostile.answer = (_request, response) => response.writeHead(504).end("<html>");
  const gone = { AGENT_RESEARCH_URL: "https://localhost:1" };
  const elsewhere = { AGENT_RESEARCH_URL: hostile.url, AGENT_RESEARCH_CA_FILE: hostile.caFile };
  const good = join(folder, "good.json");
  writeFileSync(good, JSON.stringify(samplePackage()));
  const cases: [words: string[], environment: Record<string, string>, code: number, stderr: RegExp][] = [
    [["list"], { AGENT_RESEARCH_TOKEN: "" }, 2, /^tapline: No token is configured; set AGENT_RESEARCH_TOKEN/],
    [["list"], { AGENT_RESEARCH_URL: "" }, 2, /set AGENT_RESEARCH_URL/],
    [["get", "../x"], {}, 2, /A study id must be a UUID\./],
    [["draft", join(folder, "none.json")], {}, 2, /Cannot read .*none\.json \(ENOENT\)\./],
    [["draft", invalid], {}, 2, /^tapline: The title is blank\.$/m],
    [["draft", large], {}, 2, /larger than the limit of 1000000 bytes/],
    [["get", absent], {}, 1, /No such study/],
    [["list"], { AGENT_RESEARCH_TOKEN: "tpl_wrong" }, 1, /token/],
    [["list"], gone, 3, /^tapline: Nothing listens at localhost:1\.$/m],
    [["draft", good], elsewhere, 1, /The draft may exist: .* --key [0-9a-f-]{36}/],
  ];
  for (const [words, environment, code, stderr] of cases) {
    const ran = await inProcess(["study", ...words], environment);
    assert.match(ran.stderr, stderr);
    assert.not.match(ran.stderr, /^ {4}at /m);
    assert.equal([ran.code, ran.stdout], [code, ""], words.join(" "));
  }
  const ran = await tapline(["study", "list"], gone);
  assert.equal(ran, { code: 3, stdout: "", stderr: "tapline: Nothing listens at localhost:1.\n" });
});

test.run();
