/** Titles, notes and pins of jobs: by hand, in files, and at the page's own addresses. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Job, JobSummary } from "../../src/contracts/index.js";
import { Events } from "../../src/workbench/events.js";
import { JobNotes } from "../../src/workbench/job-notes.js";
import { titleOf } from "../../src/workbench/job-titles.js";
import { filterJobs, noFilter, titleOfJob } from "../../src/workbench/page/job-list.js";
import type { WorkbenchEvent } from "../../src/workbench/wire.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-notes-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

test("each experiment's title is made from its prompt", () => {
  const clean = { clean: "France is", corrupted: "Japan is" };
  const examples = [
    { text: "it was bad", label: 0 },
    { text: "it was good", label: 1 },
  ];
  assert.equal(
    [
      titleOf("inspect", { prompt: "The capital\n of France" }),
      titleOf("compare", { intervention: "steer", prompts: ["One", "Two"], layers: [5] }),
      titleOf("patch_sweep", clean),
      titleOf("patch_sweep", { pairs: [clean] }),
      titleOf("probe", { examples, layers: [1, 2] }),
      titleOf("features", { texts: ["a", "b"], dictionary: "corner" }),
      titleOf("drift", { model: "/models/a.gguf", other: "b" }),
      titleOf("sae", { layers: [3], features: 64 }),
      titleOf("extract", {}),
    ],
    [
      "“The capital of France”",
      "steer “One” at layer 5",
      "“France is” and “Japan is”",
      "“France is” and “Japan is”",
      "“it was good” or “it was bad” at 2 layers",
      "“a” through corner",
      "a.gguf and b",
      "train a dictionary of 64 features at layer 3",
      "activations of a data set",
    ],
  );
  const films = ["lovely.", "a bore."].map((end, at) => ({
    text: `The review says that it was ${end}`,
    label: 1 - at,
  }));
  assert.is(titleOf("probe", { examples: films }), "“…lovely.” or “…a bore.”");
  const long = titleOf("patch_sweep", { clean: "x".repeat(500), corrupted: "y".repeat(500) });
  assert.is(long, `“${"x".repeat(39)}…” and “${"y".repeat(39)}…”`);
  // Half of a pair of surrogates is no letter.
  assert.is(titleOf("inspect", { prompt: "😀".repeat(50) }), `“${"😀".repeat(39)}…”`);
});

const job = (id: string, prompt = "p") =>
  ({ id, operation: "inspect", config: { operation: "inspect", prompt } }) as unknown as Job;
let places = 0;

async function open(jobs: readonly Job[], place = join(folder, `notes-${places++}`)) {
  const told: WorkbenchEvent[] = [];
  const events = new Events();
  events.publish = (event) => void told.push(structuredClone(event));
  const reads: string[] = [];
  const notes = await JobNotes.open(place, events, async (id) => {
    reads.push(id);
    const found = jobs.find((one) => one.id === id);
    if (found === undefined) throw new Error("gone");
    return found;
  });
  return { notes, told, reads, place, file: join(place, "jobs.json") };
}

test("titles are made once, published, and saved in a private file", async () => {
  const jobs = [job("a", "One"), job("b", "Two")];
  const { notes, told, reads, place, file } = await open(jobs);
  await notes.follow([...jobs, job("lost")] as unknown as JobSummary[]);
  await notes.follow(jobs as unknown as JobSummary[]);
  assert.equal(reads, ["a", "b", "lost"], "each job is read once, and a deleted one is no error");
  assert.equal(notes.all, { a: { title: "“One”" }, b: { title: "“Two”" } });
  assert.equal(told, [{ type: "notes", notes: notes.all }]);
  await notes.settled();
  assert.is(statSync(file).mode & 0o777, 0o600);
  const again = await open([], place);
  assert.equal(again.notes.all, notes.all);
  writeFileSync(file, "not JSON");
  assert.equal((await open([], place)).notes.all, {});
});

test("a title, a note and a pin are changed apart; empty ones are removed", async () => {
  const { notes, file } = await open([job("a", "One")]);
  assert.equal(await notes.change("a", { title: " Mine ", pinned: true }), {
    ...{ title: "“One”", own: "Mine", pinned: true },
  });
  assert.equal(await notes.change("a", { note: "look again" }), {
    ...{ title: "“One”", own: "Mine", note: "look again", pinned: true },
  });
  assert.equal(await notes.change("a", { title: "", pinned: false }), { title: "“One”", note: "look again" });
  assert.equal(await notes.change("a", { note: " " }), { title: "“One”" });
  await notes.settled();
  assert.equal(JSON.parse(readFileSync(file, "utf8")), [["a", { title: "“One”" }]]);
  notes.drop("a");
  notes.drop("a");
  await notes.settled();
  assert.equal(JSON.parse(readFileSync(file, "utf8")), []);
});

test("jobs are found by all words, filtered, and pinned ones come first", () => {
  const made = (id: string, operation: string, status = "completed") =>
    ({ id, operation, status, model: "demo" }) as unknown as JobSummary;
  const jobs = [made("a1", "inspect"), made("b2", "probe", "failed"), made("c3", "inspect")];
  const notes = {
    a1: { title: "“The capital of France”" },
    c3: { title: "“Japan”", own: "My favourite", note: "the capital again", pinned: true as const },
  };
  const found = (filter: Partial<typeof noFilter>) =>
    filterJobs(jobs, notes, { ...noFilter, ...filter }).map(({ id }) => id);
  assert.equal(found({}), ["c3", "a1", "b2"]);
  assert.equal(found({ words: "CAPITAL" }), ["c3", "a1"]);
  assert.equal(found({ words: "capital again" }), ["c3"]);
  assert.equal(found({ words: "japan" }), ["c3"], "the title from the prompt is still found");
  assert.equal(found({ words: "b2 demo" }), ["b2"]);
  assert.equal(found({ operation: "inspect", words: "france" }), ["a1"]);
  assert.equal(found({ status: "failed" }), ["b2"]);
  assert.equal(
    jobs.map((one) => titleOfJob(one, notes[one.id as "a1"])),
    ["“The capital of France”", "probe", "My favourite"],
  );
});

test.run();
