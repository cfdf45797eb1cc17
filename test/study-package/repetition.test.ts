/** A study that was repeated: figures side by side, their tolerances, and the words for what came of it. */

import { test } from "uvu";
import * as assert from "uvu/assert";
import type { StudyPackage } from "../../src/contracts/studies/index.js";
import { figureOf } from "../../src/findings/numbers.js";
import { type Compared, compareFigures, outcomeOf, reproductionWords } from "../../src/study/index.js";
import { differedText } from "../../src/study/reproduction.js";
import { compareJob, inspectJob, patchJob, probeJob, saeJob } from "../report/jobs.js";
import { uuid } from "./parts.js";

const figure = (change: Partial<Compared> = {}): Compared => ({
  ...{ title: "Norms", values: 10, within: 10, missing: 0, held: true, worst: null },
  ...change,
});

test("what came of a repetition: held, partly, failed, and how far it was off", () => {
  const off = figure({
    held: false,
    within: 7,
    missing: 2,
    worst: { what: "layer 3", before: 0.123456, after: 12345.6 },
  });
  assert.equal(
    [[figure()], [figure(), off], [off], []].map((list) => outcomeOf(list)),
    ["held", "partly", "failed", "failed"],
  );
  assert.is(
    differedText([figure(), off, figure({ title: "Other", held: false, within: 0 })]),
    "Norms: 7 of 10 values within tolerance, 2 in only one result; largest difference at layer 3: published 0.1235, measured 12350. Other: 0 of 10 values within tolerance.",
  );
  assert.is(differedText([figure()]), "");
  assert.is([...differedText(Array.from({ length: 40 }, () => off))].length, 1000);
  assert.equal([figureOf(0.00012346), figureOf(5), figureOf(-1234567)], ["0.0001235", "5", "-1235000"]);
  const repeated = {
    ...{
      study: uuid(1),
      version: 2,
      package_sha256: "a".repeat(64),
      address: "https://s.example/studies/x/v/2",
    },
    content: { title: "A *bold*\n [claim]", license: "CC-BY-4.0" } as StudyPackage,
    ...{ compared: [figure(), off], tolerances: { share: 0.02, relative: 0.05 }, left: ["one was not run"] },
  };
  const told = reproductionWords({ ...repeated, outcome: "partly" }, "By hand.");
  const claim = {
    schemaVersion: 1,
    study: uuid(1),
    version: 2,
    package_sha256: "a".repeat(64),
    outcome: "partly",
    differed: differedText([off]),
  };
  assert.equal(told, {
    title: "Reproduction: A *bold* [claim]",
    question:
      "Does “A \\*bold\\* \\[claim\\]” (<https://s.example/studies/x/v/2>, version 2) reproduce on another machine?",
    hypothesis: "",
    method:
      "The original's Lab requests were run again, and every value of its figures was compared with the new one. Tolerances: 0.02 for probabilities and shares, 5 % for everything else. A figure matches if 95 % of its values do.\n\nBy hand.",
    finding: `Some figures match the original within the tolerances, and some do not.\n\n| figure | values within tolerance | values in only one result | |\n| --- | --- | --- | --- |\n| Norms | 10 of 10 | 0 | held |\n| Norms | 7 of 10 | 2 | differs |\n\n\`\`\`tapline-reproduction\n${JSON.stringify(claim)}\n\`\`\``,
    limitations:
      "Repeating the requests shows that the values are reproducible, not that the original's interpretation is right. The original's limitations also apply.",
    ...{ license: "CC-BY-4.0", omissions: ["one was not run"] },
  });
  const held = reproductionWords({ ...repeated, compared: [figure()], outcome: "held" }, "");
  assert.match(held.finding, /^All figures match the original within the tolerances\.\n/);
  assert.not.match(held.finding, "differed");
  assert.match(
    reproductionWords({ ...repeated, compared: [off], outcome: "failed" }, "").finding,
    /^No figure matches the original/,
  );
  const longTitle = reproductionWords(
    { ...repeated, content: { ...repeated.content, title: "x".repeat(160) }, outcome: "held" },
    "m".repeat(9000),
  );
  assert.equal([longTitle.title.length, longTitle.method.length], [160, 8000]);
  // Somebody else's words mean nothing in Markdown, in a table's cells neither.
  const marks = "\\`*_{}[]<>()#+!|~$";
  const odd = reproductionWords(
    {
      ...repeated,
      ...{ content: { ...repeated.content, title: marks, license: "CC0-1.0" }, address: "a".repeat(5000) },
      ...{ compared: [figure({ title: marks })], outcome: "held" },
    },
    "",
  );
  const plain = "\\\\\\`\\*\\_\\{\\}\\[\\]\\<\\>\\(\\)\\#\\+\\!\\|\\~\\$";
  assert.ok(odd.question.startsWith(`Does “${plain}” (<aaa`), odd.question.slice(0, 60));
  assert.ok(odd.finding.includes(`\n| ${plain} | 10 of 10 |`), odd.finding);
  assert.equal([odd.question.length, odd.question.at(-1), odd.license], [4000, "…", "CC0-1.0"]);
});

test("figures are compared by their tolerances, shares absolutely", () => {
  const job = inspectJob(Array.from({ length: 20 }, (_, at) => `t${at}`));
  type Layers = { layers: { norms: number[]; predictions: { probability: number }[][] }[] };
  const norms = (change: (norms: number[]) => void) => {
    const copy = structuredClone(job.result);
    for (const layer of (copy as unknown as Layers).layers) change(layer.norms);
    return compareFigures("inspect", job.result, copy).find(({ title }) => title === "Norms") as Compared;
  };
  // Forty norms: two of them may be off, 95 % being held; three may not.
  const off = (count: number) =>
    norms((list) => {
      for (let at = 0; at < count; at += 1) list[at] = (list[at] as number) * 2;
    });
  assert.equal([off(1).held, off(1).within], [true, 38]);
  assert.equal([off(2).held, off(2).within, off(2).values], [false, 36, 40]);
  // Forty blocks by one token: two that one of them lacks are 5 %, three are more.
  const blocks = inspectJob(["t"]);
  const [layer] = (blocks.result as unknown as Layers).layers;
  Object.assign(blocks.result, { layers: Array.from({ length: 40 }, (_, at) => ({ ...layer, layer: at })) });
  const lacking = (count: number) => {
    const copy = structuredClone(blocks.result);
    (copy as unknown as Layers).layers.splice(0, count);
    const found = compareFigures("inspect", blocks.result, copy).find(({ title }) => title === "Norms");
    return [found?.values, found?.missing, found?.held];
  };
  assert.equal(
    [lacking(2), lacking(3), lacking(40)],
    [
      [38, 2, true],
      [37, 3, false],
      [0, 40, false],
    ],
  );
  // The farthest of its own tolerance is told: 20 of 10 is farther than 30 of 20.
  const worst = norms((list) => {
    list[9] = (list[9] as number) * 2;
    list[19] = (list[19] as number) * 1.5;
  }).worst;
  assert.equal([worst?.before, worst?.after], [10, 20]);
  const probabilities = (by: number) => {
    const copy = structuredClone(job.result);
    for (const layer of (copy as unknown as Layers).layers)
      for (const list of layer.predictions) for (const one of list) one.probability += by;
    return compareFigures("inspect", job.result, copy).find(({ title }) => /lens/i.test(title)) as Compared;
  };
  assert.equal([probabilities(0.0199).held, probabilities(0.0201).held], [true, false]);
  assert.is(probabilities(-0.0201).within, 0);
  // A tolerance is within itself; of a value below zero it is as wide; of none there is next to none.
  const from = (before: number, after: number, relative: number) => {
    const [old, now] = [structuredClone(job.result), structuredClone(job.result)];
    for (const layer of (old as unknown as Layers).layers) layer.norms.fill(before);
    for (const layer of (now as unknown as Layers).layers) layer.norms.fill(after);
    const compared = compareFigures("inspect", old, now, { share: 0, relative });
    return compared.find(({ title }) => title === "Norms")?.within;
  };
  assert.equal([from(2, 3, 0.5), from(2, 3.001, 0.5)], [40, 0]);
  assert.equal([from(-2, -3, 0.5), from(-2, -3.001, 0.5)], [40, 0]);
  assert.equal([from(0, 0, 0.5), from(0, 4e-7, 0.5), from(0, 6e-7, 0.5)], [40, 40, 0]);
  const wide = compareFigures("inspect", job.result, job.result, { share: 0, relative: 0 });
  assert.ok(wide.every(({ missing }) => missing === 0));
});

test("each kind of figure has its values and its tolerance", () => {
  type Change = (result: never) => unknown;
  const heldBy = (job: ReturnType<typeof inspectJob>, change: Change) => {
    const copy = structuredClone(job.result);
    change(copy as never);
    const compared = compareFigures(job.operation, job.result, copy);
    return Object.fromEntries(compared.map(({ title, within, values }) => [title, [within, values]]));
  };
  // Lines of probabilities: 0.02 of a share, whatever it is of. Three strengths of two prompts, and of their mean.
  const dose = (by: number) =>
    heldBy(compareJob(), (result: { trials: { probability: number }[] }) => {
      for (const trial of result.trials) trial.probability += by;
    })["Dose-response"];
  assert.equal(
    [dose(0.0199), dose(0.0201)],
    [
      [9, 9],
      [0, 9],
    ],
  );
  // Changes of probabilities are shares, too.
  const delta = (by: number) =>
    heldBy(compareJob(), (result: { trials: { delta: number }[] }) => {
      (result.trials[0] as { delta: number }).delta += by;
    })["Change by prompt"];
  assert.equal(
    [delta(0.0199), delta(0.0201)],
    [
      [6, 6],
      [5, 6],
    ],
  );
  // A loss is no share: 5 % of 2 and of 1. Nor is a mean activation; explained variance and dead features are.
  type Sae = {
    reports: { losses: { loss: number }[]; features: { mean: number }[]; explained_variance: number }[];
  };
  const sae = (by: number) =>
    heldBy(saeJob() as never, (result: Sae) => {
      for (const report of result.reports) {
        for (const each of report.losses) each.loss += by;
        for (const each of report.features) each.mean += by;
        report.explained_variance += by;
      }
    });
  const found = ({
    "Training loss": loss,
    Features: features,
    "Explained variance and dead features": quality,
  }: Record<string, number[]>) => [loss, features, quality];
  assert.equal(found(sae(0.019)), [
    [2, 2],
    [2, 2],
    [2, 2],
  ]);
  assert.equal(found(sae(0.045)), [
    [2, 2],
    [1, 2],
    [1, 2],
  ]);
  assert.equal(found(sae(0.06)), [
    [1, 2],
    [1, 2],
    [1, 2],
  ]);
  const sites = (by: number) =>
    heldBy(patchJob() as never, (result: { sites: { recovery: number }[] }) => {
      for (const site of result.sites) site.recovery += by;
    })["Recovery by layer and token"];
  assert.equal([sites(0.0199)?.[0], sites(0.0201)?.[0]], [6, 0]);
  // Curves and counts that come in steps are compared nowhere.
  const titles = Object.keys(heldBy(probeJob(), () => {}));
  assert.equal(titles, ["Accuracy by layer"]);
});

test.run();
