/**
 * Whole pictures of small results, as recorded/pictures.txt has them: drawn once, then read against these numbers. After
 * an intended change, look at the picture again and change the file.
 */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Execution, ExecutionList } from "../../src/contracts/execution.js";
import type { DriftResult, ExtractResult, FeaturesResult, InspectResult } from "../../src/contracts/index.js";
import type { Stats } from "../../src/contracts/stats.js";
import { comparePicture } from "../../src/operations/compare/picture.js";
import { driftPicture } from "../../src/operations/drift/picture.js";
import { extractPicture } from "../../src/operations/extract/picture.js";
import { featuresPicture } from "../../src/operations/features/picture.js";
import { inspectPicture } from "../../src/operations/inspect/picture.js";
import { probePicture } from "../../src/operations/probe/picture.js";
import { saePicture } from "../../src/operations/sae/picture.js";
import type { Canvas } from "../../src/terminal/canvas.js";
import { executionList, executionPicture } from "../../src/terminal/execution-picture.js";
import { decompositionPicture, routingPicture } from "../../src/terminal/inspect-grids.js";
import { jobList } from "../../src/terminal/job-list.js";
import { statsPicture } from "../../src/terminal/stats-picture.js";
import { inspected } from "../report/small-findings.js";
import { recordedTexts } from "../support/recorded.js";
import {
  artefacts,
  change,
  compared,
  drifted,
  execution,
  extracted,
  features,
  intervals,
  jobs,
  page,
  probe,
  probeReport,
  routing,
  sae,
  saeReport,
  stats,
  trial,
} from "./results.js";

/** Two blocks read by two lenses, with a token that is followed at every place. */
const followed = {
  ...inspected,
  target_token: " t4",
  lens: { name: "tuned", kind: "tuned" },
  layers: inspected.layers.map((layer, at) => ({
    ...layer,
    target: [
      { rank: 12 - at, probability: 0.015625 },
      { rank: 2 - at, probability: 0.25 + at / 4 },
    ],
    entropies: [3.25, 1.5 - at],
    divergences: [0.5 - at / 4, 0.125],
    translated: {
      predictions: layer.predictions,
      target: [
        { rank: 3, probability: 0.125 },
        { rank: 1, probability: 0.75 },
      ],
      entropies: [2, 0.25],
      divergences: [0.0625, 0.03125],
    },
  })),
} as unknown as InspectResult;
const wide: Canvas = { width: 100, colors: "none" };
const narrow: Canvas = { width: 56, colors: "none" };

const pictures: [name: string, picture: () => string[]][] = [
  ["drift", () => driftPicture(drifted, wide)],
  [
    "drift-artefacts",
    () => driftPicture({ ...drifted, ...artefacts } as DriftResult, { width: 130, colors: "none" }),
  ],
  [
    "drift-point",
    () =>
      driftPicture(
        {
          ...drifted,
          dictionary: { name: "d", point: "mid", layer: 1, jaccard: null },
        } as unknown as DriftResult,
        narrow,
      ),
  ],
  [
    "executions",
    () =>
      executionList(
        {
          executions: [
            execution,
            { ...execution, status: "running", ended: null, started: 1090, output_tokens: 0, preview: "" },
          ],
          capacity: 500,
          dropped: 0,
        } as unknown as ExecutionList,
        wide,
        1100,
      ),
  ],
  [
    "executions-narrow",
    () =>
      executionList(
        { executions: [execution], capacity: 500, dropped: 3 } as unknown as ExecutionList,
        narrow,
        1100,
      ),
  ],
  ["execution", () => executionPicture(execution, wide, 1100)],
  [
    "execution-narrow",
    () =>
      executionPicture(
        {
          ...execution,
          parent_id: "p",
          stream: false,
          truncated: true,
          finish_reason: null,
          ended: null,
          input: { prompt: "The sky" },
        } as Execution,
        narrow,
        1010,
      ),
  ],
  ["extract", () => extractPicture(extracted, wide)],
  [
    "extract-all",
    () =>
      extractPicture(
        {
          ...extracted,
          shard: [2, 3],
          cut_texts: 4,
          kept_files: 2,
          folder: "/out",
          tokens_per_second: 1234.5,
          rows: "response",
          row_count: 12,
        } as ExtractResult,
        wide,
      ),
  ],
  ["features", () => featuresPicture(features, wide)],
  [
    "features-page",
    () =>
      featuresPicture(
        {
          ...features,
          point: "mid",
          texts: [features.texts[0]],
          features: [],
          pages: [
            page,
            {
              ...page,
              feature: 1,
              label: undefined,
              histogram: [],
              groups: [],
              raised: null,
              neighbours: [],
            },
          ],
          fidelity: { ...features.fidelity, cross_entropy: null, explained_variance: null },
        } as unknown as FeaturesResult,
        wide,
      ).slice(1),
  ],
  ["jobs", () => jobList(jobs, wide, 1020)],
  ["jobs-narrow", () => jobList(jobs.slice(0, 1), narrow, 1020)],
  ["stats", () => statsPicture(stats, wide)],
  [
    "stats-more",
    () =>
      statsPicture(
        {
          ...stats,
          model: null,
          slots: { busy: 20, total: 32 },
          row_captures: { kept: 2, dropped: 1, bytes: 2e6 },
        } as Stats,
        narrow,
      ),
  ],
  ["inspect", () => inspectPicture(followed, { width: 60, colors: "none" })],
  ...(["rank", "entropy", "divergence"] as const).map((lensView): [string, () => string[]] => [
    `inspect-${lensView}`,
    () => inspectPicture(followed, { width: 60, colors: "none", lensView }).slice(0, 13),
  ]),
  [
    "inspect-unread",
    () =>
      inspectPicture({ ...inspected, attention: [], routing: [] } as unknown as InspectResult, {
        ...{ width: 40, colors: "none", lensView: "rank" },
      }).slice(0, 4),
  ],
  [
    "contributions",
    () =>
      [0, 1].flatMap((constant) =>
        decompositionPicture({ ...followed.decomposition!, constant }, narrow).slice(-2),
      ),
  ],
  ["routing", () => routingPicture({ tokens: ["The", " cat"], routing }, wide)],
  ["sae", () => saePicture(sae(saeReport(5)), 32, wide)],
  [
    "sae-two",
    () =>
      saePicture(
        sae(
          saeReport(36, { explained_variance: null, note: "All alike." }),
          saeReport(2, { dead_fraction: 1 / 3 }),
        ),
        32,
        { width: 72, colors: "none" },
      ),
  ],
  ["probe", () => probePicture(probe(probeReport(5, 0.875)), { width: 84, colors: "none" })],
  [
    "probe-rows",
    () =>
      probePicture(
        probe(
          ...[3, 12].map((layer) =>
            probeReport(layer, layer / 16, {
              by_row: { ...probeReport(layer, 0.625), accuracy: 0.5, test_size: 40, shared_rows: 3 },
            }),
          ),
        ),
        { width: 90, colors: "none" },
      ).slice(-22),
  ],
  [
    "probe-two",
    () =>
      probePicture(
        probe(probeReport(12, 0.9, { ...intervals, converged: false }), probeReport(3, 0.8, intervals)),
        { width: 120, colors: "none" },
      ),
  ],
  [
    "compare",
    () =>
      comparePicture(
        compared(
          trial("Where?", -2, 0.25, " a b d", change(0.5)),
          trial("Where?", 0, 0.5, " a b c", change(0)),
          trial("Where?", 2, 0.625, " x", change(3)),
        ),
        { width: 80, colors: "none" },
      ),
  ],
  [
    "compare-narrow",
    () =>
      comparePicture(
        compared(
          ...["A prompt of many words", "Another prompt of many"].flatMap((prompt) =>
            [1, 2, 3].map((strength) => trial(prompt, strength, strength / 4, " a b c")),
          ),
        ),
        { width: 38, colors: "none" },
      ).slice(14, 28),
  ],
  [
    "compare-two",
    () =>
      comparePicture(
        {
          ...compared(
            trial("One?", 1, 0.5, " a b c", { control: { probability: 0.4 } }),
            trial("One?", 2, 0.9, " a", { control: { probability: 0.3 } }),
            trial("Two?", 1, 0.1, "", { control: { probability: 0.2 } }),
            trial("Two?", 2, 0.3, " a b c d", { control: { probability: 0.1 } }),
          ),
          intervention: "scale",
        },
        { width: 60, colors: "none" },
      ),
  ],
];

/** The recorded pictures by name. */
const recorded = recordedTexts(new URL("./recorded/pictures.txt", import.meta.url));

for (const [name, picture] of pictures) {
  test(`the picture ${name} is the one that was looked at`, () => {
    assert.is(picture().join("\n"), recorded.get(name) as string);
  });
}

/** The titles of a table, or of the line that begins so, as they are from wide to narrow. */
function narrowing(draw: (canvas: Canvas) => string[], begin: RegExp): string[] {
  const seen: string[] = [];
  for (let width = 160; width >= 40; width--) {
    const line = draw({ width, colors: "none" }).find((one) => begin.test(one)) ?? "";
    const titles = line.trim().split(/ {2,}/).join(", ");
    if (titles !== seen.at(-1)) seen.push(titles);
  }
  return seen;
}

test("narrow terminals lose columns, the least important first", () => {
  const layers = probe(probeReport(12, 0.9, intervals), probeReport(3, 0.8, intervals));
  assert.equal(
    narrowing((canvas) => probePicture(layers, canvas), /^layer +accuracy/),
    [
      "layer, accuracy, 95 %, majority, shuffled, 95 %, AUROC, 95 %, p, Brier, train/test, fit",
      "layer, accuracy, 95 %, majority, shuffled, 95 %, AUROC, 95 %, p, Brier, train/test",
      "layer, accuracy, 95 %, majority, shuffled, 95 %, AUROC, 95 %, p, Brier",
      "layer, accuracy, 95 %, majority, shuffled, 95 %, AUROC, 95 %, p",
      "layer, accuracy, 95 %, majority, shuffled, 95 %, AUROC",
      "layer, accuracy, 95 %, majority, shuffled, AUROC",
      "layer, accuracy, majority, shuffled, AUROC",
      // Narrower still, its titles are cut.
      "",
    ],
  );
  const trained = sae(saeReport(5));
  assert.equal(
    narrowing((canvas) => saePicture(trained, 32, canvas), /^layer +explained/),
    [
      "layer, explained, MSE, train MSE, active, dead, alive",
      "layer, explained, MSE, active, dead, alive",
      "layer, explained, MSE, active, dead",
    ],
  );
  assert.equal(
    narrowing((canvas) => jobList(jobs, canvas, 1020), /^id/),
    [
      "id, status, experiment, submitted, took, model",
      "id, status, experiment, submitted, took",
      "id, status, experiment, submitted",
      "id, status, experiment",
      // Below sixty columns, ids have separate lines.
      "",
    ],
  );
  const list = { executions: [execution], capacity: 64, text_limit: 262_144, dropped: 0 } as const;
  assert.equal(
    narrowing((canvas) => executionList(list as unknown as ExecutionList, canvas, 1100), /^id/),
    [
      "id, status, endpoint, when, took, tokens, answer",
      "id, status, when, took, tokens, answer",
      "id, status, took, tokens, answer",
      "id, status, tokens, answer",
      "id, status, answer",
    ],
  );
});

test("a curve is marked by its layer, from the tenth on by a letter, up to z", () => {
  const narrowest: Canvas = { width: 60, colors: "none" };
  /** The drawing in the first plot that is neither a line nor empty. */
  const marks = (lines: string[]) => {
    const rows = lines.flatMap((line) => /[│┤](.*)$/.exec(line)?.[1] ?? []);
    return [
      ...new Set(
        rows
          .slice(0, 8)
          .join("")
          .match(/[0-9a-z{|]/g) ?? [],
      ),
    ]
      .sort()
      .join("");
  };
  const layers = [9, 10, 35, 36];
  const trained = sae(
    ...layers.map((layer, at) =>
      saeReport(layer, { losses: [0, 1, 2, 3, 4].map((step) => ({ step, loss: 10 + at })) }),
    ),
  );
  assert.is(marks(saePicture(trained, 32, narrowest)), "9az");
  assert.is(marks(probePicture(probe(...layers.map((layer) => probeReport(layer, 0.5))), narrowest)), "9az");
});

test("sixteen features are shown for one layer, eight for two, four for more", () => {
  const feature = (index: number) => ({ feature: 100 + index, mean: 1, frequency: 0.5, examples: [] });
  const many = Array.from({ length: 20 }, (_, index) => feature(index));
  const shown = (layers: number) => {
    const reports = Array.from({ length: layers }, (_, layer) => saeReport(layer, { features: many }));
    return saePicture(sae(...reports), 32, wide).filter((line) => /^ *1\d\d +\d/.test(line)).length;
  };
  assert.equal([1, 2, 3].map(shown), [16, 16, 12]);
});

test("without another clock spans end now", () => {
  const begun = Date.now() / 1000 - 5400;
  const job = { ...jobs[0]!, created: begun, started: begun };
  assert.match(jobList([job], wide)[1] as string, / 1 h ago {4}1 h 30 min /);
  const running = { ...execution, status: "running", started: begun, ended: null } as Execution;
  const list = { executions: [running], capacity: 64, text_limit: 262_144, dropped: 0 } as const;
  assert.match(executionList(list as unknown as ExecutionList, wide)[1] as string, / 1 h ago {2}1 h 30 min /);
  assert.match(executionPicture(running, wide)[0] as string, / in 1 h 30 min, 1 h ago$/);
});

test("every recorded picture is drawn", () => {
  assert.equal(
    [...recorded.keys()],
    pictures.map(([name]) => name),
  );
});

test.run();
