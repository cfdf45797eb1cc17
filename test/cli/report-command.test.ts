/** Which job a report is of, and where it is written. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { extractJob } from "../studies/support/results.js";
import { command } from "./in-process.js";
import { standInWithFolder } from "./stand-in.js";

const service = await standInWithFolder();
const { folder } = service;
test.after(() => service.close());

const id = "abcd1234".repeat(4);
const job = { ...extractJob(), id };
const html = /^<!doctype html>/i;

async function reported(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await command(["report", ...words]);
  assert.equal([code, stderr], [0, ""], words.join(" "));
  return stdout;
}

test("report accepts a file, a folder or a Lab job, by default the newest", async () => {
  const usual = "tapline-extract-abcd1234.html";
  const written = async (...words: string[]) => {
    assert.is(await reported(...words), `Report saved to ${usual}\n`);
    assert.match(readFileSync(join(folder, usual), "utf8"), html);
    rmSync(join(folder, usual));
  };
  writeFileSync(join(folder, "one.json"), JSON.stringify(job));
  await written("--json", "one.json");
  mkdirSync(join(folder, "made"));
  writeFileSync(join(folder, "made", "job.json"), JSON.stringify(job));
  await written("made");
  service.answers = {
    "GET /lab/v1/jobs": { jobs: [{ id }, { id: "e".repeat(32) }] },
    [`GET /lab/v1/jobs/${id}`]: job,
  };
  await written("--lab", service.url);
  await written("abcd", "--lab", service.url);
});

test("it is written where it is wanted, or to standard output", async () => {
  assert.is(await reported("one.json", "--out", "x.html"), "Report saved to x.html\n");
  assert.match(await reported("one.json", "--out", "-"), html);
  const { id: _, ...nameless } = job;
  writeFileSync(join(folder, "nameless.json"), JSON.stringify(nameless));
  assert.is(await reported("--json", "nameless.json"), "Report saved to tapline-extract.html\n");
  assert.ok(existsSync("tapline-extract.html"));
});

test("what is asked for twice, or not at all, is refused", async () => {
  const before = readdirSync(folder);
  for (const [words, sentence] of [
    [["one.json", "--json", "one.json"], "A job and --json cannot be combined."],
    [["--json", ""], "It must not be empty."],
    [["one.json", "--out", ""], "It must not be empty."],
    [["--json", "none.json"], "Cannot read none.json (ENOENT)."],
  ] as const) {
    const { code, stdout, stderr } = await command(["report", ...words]);
    assert.equal([code, stdout], [2, ""]);
    assert.match(stderr, sentence);
  }
  assert.equal(readdirSync(folder), before);
});

test.run();
