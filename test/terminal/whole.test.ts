/**
 * Whole pictures of small results, as recorded/pictures.txt has them: drawn once, then read against these numbers. Whoever
 * changes a picture on purpose looks at it again and changes the file.
 */
import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Execution, ExecutionList } from "../../src/contracts/execution.js";
import type { DriftResult, ExtractResult, FeaturesResult } from "../../src/contracts/index.js";
import type { Stats } from "../../src/contracts/stats.js";
import type { Canvas } from "../../src/terminal/canvas.js";
import { comparePicture } from "../../src/terminal/compare-picture.js";
import { driftPicture } from "../../src/terminal/drift-picture.js";
import { executionList, executionPicture } from "../../src/terminal/execution-picture.js";
import { extractPicture } from "../../src/terminal/extract-picture.js";
import { featuresPicture } from "../../src/terminal/features-picture.js";
import { jobList } from "../../src/terminal/job-list.js";
import { probePicture } from "../../src/terminal/probe-picture.js";
import { routingPicture } from "../../src/terminal/routing-grid.js";
import { saePicture } from "../../src/terminal/sae-picture.js";
import { statsPicture } from "../../src/terminal/stats-picture.js";
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
        3,
        { width: 80, colors: "none" },
      ),
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
        2,
        { width: 60, colors: "none" },
      ),
  ],
];

/** The recorded pictures by name. */
const recorded = new Map(
  readFileSync(new URL("./recorded/pictures.txt", import.meta.url), "utf8")
    .replace(/\n$/, "")
    .split(/^##### /m)
    .slice(1)
    .map((part): [string, string] => {
      const [name = "", ...lines] = part.replace(/\n$/, "").split("\n");
      return [name, lines.join("\n")];
    }),
);

for (const [name, picture] of pictures) {
  test(`the picture ${name} is the one that was looked at`, () => {
    assert.is(picture().join("\n"), recorded.get(name) as string);
  });
}

test("every recorded picture is drawn", () => {
  assert.equal(
    [...recorded.keys()],
    pictures.map(([name]) => name),
  );
});

test.run();
