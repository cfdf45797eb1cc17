/**
 * One walk: experiments in a Lab, a package, its publication, and another person's `tapline reproduce STUDY-URL` with the
 * draft that comes of it, and the link on the first one's page. And how results are compared.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { InspectResult, Job } from "../../src/contracts/index.js";
import type { StudyPackage } from "../../src/contracts/studies/index.js";
import type { ReportedJob } from "../../src/report/index.js";
import { checkPackage } from "../../src/studies/text/check-package.js";
import { parseStrictJson } from "../../src/studies/text/strict-json.js";
import {
  assemble,
  compareFigures,
  isPublicModel,
  jobEvidence,
  outcomeOf,
  requestsIn,
} from "../../src/study/index.js";
import { command } from "../cli/in-process.js";
import { type ResearchService, startResearch } from "../client/research-service.js";
import { demoInspect, type Harness, openHarness } from "../lab/harness.js";
import { hostile, hostileJobs, inspectJob, probeJob } from "../report/jobs.js";
import { labJob, words } from "./evidence.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-reproduce-"));
let lab: Harness;
let research: ResearchService;

test.before(async () => {
  [lab, research] = await Promise.all([openHarness(), startResearch({ seedData: false })]);
});
test.after(async () => {
  await Promise.all([lab.close(), research.close()]);
  rmSync(folder, { recursive: true, force: true });
});

/** The response to a visitor's browser. */
function page(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(new URL(path, research.origin), { ca: readFileSync(research.caFile) }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part) => {
        text += part;
      });
      answer.on("end", () => resolve(text)).on("error", reject);
    }).on("error", reject);
  });
}

/** Runs `tapline reproduce` as somebody else does, trusting the service's own certificate. */
async function reproduce(...more: string[]) {
  process.env.AGENT_RESEARCH_CA_FILE = research.caFile;
  try {
    return await command(["reproduce", ...more]);
  } finally {
    delete process.env.AGENT_RESEARCH_CA_FILE;
  }
}

test("from one person's Lab to another's: published, repeated, published, linked", async () => {
  const asked = [
    demoInspect,
    {
      operation: "compare",
      model: "demo",
      prompt: "The capital of France is",
      target_token: " Paris",
      intervention: "scale",
      strengths: [0.5, 1],
      layers: [4],
      max_tokens: 2,
    },
  ];
  const jobs: Job[] = [];
  for (const body of asked) jobs.push(await lab.finished((await lab.submit(body)).id));
  assert.equal(
    jobs.map(({ status, error }) => [status, error]),
    [
      ["completed", undefined],
      ["completed", undefined],
    ],
  );
  const { study } = assemble({ ...words, title: "Where the *capital* comes up" }, jobs.map(jobEvidence));
  const id = await research.publish(study);
  assert.ok(
    ((await page(`/studies/${id}`)).match(/<figure[ >]/g)?.length ?? 0) >= 5,
    "its results are drawn",
  );

  const address = `${research.origin}/studies/${id}`;
  const before = (await lab.request("GET", "/jobs")).body.jobs.length;
  const shown = await reproduce(address, "--lab", lab.lab.url);
  assert.is(shown.code, 2, shown.stderr);
  assert.match(shown.stderr, "1. inspect on demo");
  assert.match(shown.stderr, '"prompt":"The capital of France is"');
  assert.match(shown.stderr, "Confirmation is required");
  assert.is((await lab.request("GET", "/jobs")).body.jobs.length, before, "nothing was run");

  const out = join(folder, "again");
  const done = await reproduce(address, "--lab", lab.lab.url, "--yes", "--json", "--out", out);
  assert.is(done.code, 0, done.stderr);
  const told = JSON.parse(done.stdout);
  assert.is(told.outcome, "held");
  assert.ok(told.figures.length >= 5 && told.figures.every(({ values }: { values: number }) => values > 0));
  assert.is(told.page, join(out, "index.html"));
  const written = readFileSync(told.page, "utf8");
  assert.match(written, "All figures match the original within the tolerances.");
  assert.is(written.match(/<svg class="range"/g)?.length, told.figures.length);
  for (const run of [1, 2]) assert.match(readFileSync(join(out, `request-${run}.html`), "utf8"), "</html>");
  const draft = checkPackage(parseStrictJson(readFileSync(join(out, "study.json")))) as StudyPackage;
  assert.is(draft.title, "Reproduction: Where the *capital* comes up");
  assert.match(draft.question, "Where the \\*capital\\* comes up");
  const again = await research.publish(draft);
  const original = await page(`/studies/${id}`);
  assert.match(original, "Reproductions (1)");
  assert.match(original, `href="/studies/${again}"`);
  assert.match(original, '<span class="badge outcome-held">held</span>');
  assert.match(await page("/reproduced"), `href="/studies/${id}"`);
});

test("a non-study, an empty one, or one with local files runs nothing", async () => {
  const plain = await research.publish({
    ...assemble(words, [jobEvidence(labJob(inspectJob(), { prompt: "x" }))]).study,
    entries: [{ id: "12345678-1234-4234-8234-123456789abc", kind: "note", title: "x" }],
  });
  const nothing = await reproduce(`${research.origin}/studies/${plain}`, "--yes");
  assert.equal([nothing.code, /Nothing was run/.test(nothing.stderr)], [1, true], nothing.stderr);
  const probe = labJob(probeJob(), {
    examples: Array.from({ length: 8 }, (_, at) => ({
      text: `text ${at}`,
      label: at % 2,
      split: at < 4 ? "train" : "test",
    })),
  });
  const local = await research.publish(assemble(words, [jobEvidence(probe)]).study);
  const file = await reproduce(`${research.origin}/studies/${local}`, "--yes");
  assert.equal([file.code, /Choose your copy with --model\./.test(file.stderr)], [2, true], file.stderr);
  const missing = await reproduce(`${research.origin}/studies/12345678-1234-4234-8234-123456789abc`);
  assert.match(missing.stderr, "no such study");
  assert.match(
    (await reproduce("logit-lens-rise", "--yes")).stderr,
    "--yes and --draft are only for published studies",
  );
});

test("portable models are the embedded one and those of the hub", () => {
  for (const name of ["demo", "Qwen/Qwen3-0.6B-GGUF", "someone/small:Q8_0"])
    assert.ok(isPublicModel(name), name);
  for (const name of [
    "small.gguf",
    "/etc/passwd",
    "../x/y",
    "./a/b",
    "~/m/x",
    "C:/a/b",
    "a/b/c",
    "-x/y",
    "a/..",
  ])
    assert.not(isPublicModel(name), name);
});

test("figures are compared value by value, within tolerances", () => {
  const before = inspectJob().result as InspectResult;
  const changed = (change: (copy: InspectResult) => void) => {
    const copy = structuredClone(before);
    change(copy);
    return compareFigures("inspect", before, copy);
  };
  assert.is(outcomeOf(changed(() => {})), "held");
  // One norm of ten off by 4 % holds, by 6 % differs; probabilities may be 0.02 away.
  const norms = (compared: ReturnType<typeof changed>) => compared.find(({ title }) => title === "Norms");
  const scaled = (by: number) =>
    norms(changed((copy) => (copy.layers[0]!.norms[0] = copy.layers[0]!.norms[0]! * by)));
  assert.equal([scaled(1.04)?.held, scaled(1.04)?.within], [true, 10]);
  assert.equal([scaled(1.06)?.held, scaled(1.06)?.within], [false, 9]);
  const moved = changed((copy) => (copy.next_tokens[0]!.probability = 0.85));
  const next = moved.find(({ title }) => title === "Next token");
  assert.equal([next?.within, next?.values, next?.held], [1, 2, false]);
  assert.equal(next?.worst, { what: "token ·is", before: 0.9, after: 0.85 });
  assert.is(outcomeOf(moved), "partly");
  const fewer = changed((copy) => copy.layers.splice(0, 1));
  assert.not(norms(fewer)?.held, "a missing figure is reported");
  assert.is(norms(fewer)?.missing, 5);
  assert.is(outcomeOf([]), "failed");
});

test("requests are read from blocks as data, whatever their text", () => {
  const few = ["x", "y"].map((text, at) => ({ text, label: at % 2, split: "train" }));
  const [inspect, , probe, sae] = hostileJobs() as [ReportedJob, ReportedJob, ReportedJob, ReportedJob];
  const { study } = assemble(words, [
    jobEvidence(labJob(inspect, { prompt: hostile.slice(0, 5).join(" ") })),
    jobEvidence(labJob(probe, { examples: few })),
    jobEvidence(labJob(sae, { examples: few, features: 64, steps: 100 })),
  ]);
  const { asked, refused } = requestsIn(study);
  // A probe and an autoencoder of two examples are not requests.
  assert.equal(
    asked.map(({ request }) => request.operation),
    ["inspect"],
  );
  assert.is(refused.length, 2);
  const evil = {
    ...study,
    finding: '```tapline-request\n{"schemaVersion":1,"request":{"operation":"shell","command":"rm"}}\n```',
  };
  assert.match(requestsIn(evil).refused.join("\n"), "must be one of inspect, compare");
});

test("a study's requests name none of its reader's files, folders or hosts", () => {
  const common = { model: "demo", layers: [3] };
  const examples = Array.from({ length: 20 }, (_, at) => ({ text: `text ${at}` }));
  const requests = [
    { operation: "extract", ...common, data: "/home/me/diary.txt" },
    { operation: "extract", ...common, examples: [{ text: "a" }], out: "/home/me/.config/autostart" },
    { operation: "sae", ...common, from: "/srv/rows", features: 8, steps: 10 },
    {
      ...{ operation: "features", model: "demo", dictionary: "d", prompt: "a", pages: [1] },
      labels: "http://169.254.169.254/latest",
    },
    { operation: "drift", ...common, other: "/home/me/private.gguf", examples },
    {
      ...{ operation: "explain", model: "demo", prompt: "a", layer: 3, template: "What is X?", marker: "X" },
      verbaliser: "/home/me/verbaliser.gguf",
    },
  ];
  const told = (list: object[]) => ({
    ...assemble(words, [jobEvidence(labJob(inspectJob(), { prompt: "x" }))]).study,
    finding: list
      .map((request) => `\`\`\`tapline-request\n${JSON.stringify({ schemaVersion: 1, request })}\n\`\`\``)
      .join("\n\n"),
    entries: [],
  });
  const { asked, refused } = requestsIn(told(requests));
  assert.is(asked.length, 0);
  const places = ["data", "out", "from", "labels", "other", "verbaliser"];
  for (const [at, field] of places.entries()) {
    assert.match(refused[at] ?? "", ` with ${field}, which refers to the author's machine`);
  }
  // The same without the place is a request.
  const plain = [{ operation: "extract", ...common, examples: [{ text: "a" }] }];
  assert.is(requestsIn(told(plain)).asked.length, 1);
});

test.run();
