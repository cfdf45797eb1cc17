/**
 * What colours say, as recorded/colours.txt has it with a colour in ‹›, and ‹› where it ends: drawn once, then read. Of each
 * scale its parts from low to high; of pictures the colours of a terminal that has all.
 */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { FeaturesResult, InspectResult, PatchSweepResult } from "../../src/contracts/index.js";
import { comparePicture } from "../../src/operations/compare/picture.js";
import { featuresPicture } from "../../src/operations/features/picture.js";
import { patchSweepPicture } from "../../src/operations/patch_sweep/picture.js";
import { probePicture } from "../../src/operations/probe/picture.js";
import { saePicture } from "../../src/operations/sae/picture.js";
import type { Canvas } from "../../src/terminal/canvas.js";
import { executionList, executionPicture } from "../../src/terminal/execution-picture.js";
import { bars, inScale, lensGrid, normsGrid } from "../../src/terminal/index.js";
import { attentionPicture, decompositionPicture } from "../../src/terminal/inspect-grids.js";
import { jobList } from "../../src/terminal/job-list.js";
import {
  differenceScale,
  magnitudeScale,
  onScale,
  probabilityScale,
  type Scale,
} from "../../src/terminal/paint.js";
import { ScoreTrail, scored } from "../../src/terminal/scores.js";
import { statsPicture } from "../../src/terminal/stats-picture.js";
import { patchJob } from "../report/jobs.js";
import { inspected } from "../report/small-findings.js";
import { recordedTexts } from "../support/recorded.js";
import { example } from "./example.js";
import {
  change,
  compared,
  execution,
  features,
  jobs,
  page,
  probe,
  probeReport,
  sae,
  saeReport,
  stats,
  trial,
} from "./results.js";

const full: Canvas = { width: 64, colors: "truecolor" };
const france = example(["The", " capital", " is"], { layers: 4, leads: 2 });

/** The middle of each part, so that no rounding decides which one it is; and the ends. */
const parts = (count: number) => Array.from({ length: count }, (_, at) => (at + 0.5) / count);

function codes(scale: Scale): string[] {
  const line = (name: string, values: number[], paint: (value: number) => string) =>
    `${name}: ${values.map(paint).join(" ")}`;
  return (["16", "256", "truecolor"] as const).flatMap((colors) => {
    const count = { 16: scale.basic.length, 256: scale.indexed.length, truecolor: 0 }[colors];
    const on = colors === "truecolor" ? [0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.8, 1] : parts(count);
    return [
      line(`on ${colors}`, on, (value) => onScale("x", value, scale, colors)),
      line(`in ${colors}`, [0, 0.3, 0.6, 0.9, 1], (value) => inScale("x", value, scale, colors)),
    ];
  });
}

function trail(): string[] {
  const found = new ScoreTrail("calm");
  const spans = found.spans("One two", [
    { token: "One", probes: { calm: 0.1 } },
    { token: " two", probes: { calm: 0.9 } },
  ]);
  return [spans.map(({ text, score }) => scored(text, score, full)).join(""), found.summary(full)];
}

/** Heads of two layers in no order, of which the deeper one's second says nothing of tokens that come again. */
const heads = [3, 1].flatMap((layer) =>
  [4, 2, 0, 6, 7, 9].map((head) => ({
    ...{ layer, head, previous: layer / 4, first: head / 10, own: 0.0625 },
    induction: layer === 3 && head === 2 ? null : 0.5,
  })),
) as unknown as NonNullable<InspectResult["attention"]>;
const { decomposition } = inspected as unknown as InspectResult;
const drawn: [name: string, lines: () => string[]][] = [
  ["probabilities", () => codes(probabilityScale)],
  ["magnitudes", () => codes(magnitudeScale)],
  ["differences", () => codes(differenceScale)],
  ["lens", () => [lensGrid(france, full)]],
  ["norms", () => [normsGrid(france, full)]],
  ["bars", () => [bars(france.next_tokens, { ...full, width: 40 })]],
  ["attention", () => attentionPicture(heads, { ...full, width: 42 })],
  [
    "contributions-none",
    () =>
      decompositionPicture(
        { ...decomposition!, constant: 0, blocks: [{ layer: 0, attention: 0, mlp: -0 }] },
        full,
      ).slice(1),
  ],
  ["contributions", () => decompositionPicture(decomposition, full)],
  ["patch-sweep", () => patchSweepPicture(patchJob().result as PatchSweepResult, full)],
  ["execution", () => executionPicture(execution, full, 1100)],
  [
    "execution-prompt",
    () => executionPicture({ ...execution, input: { prompt: "The sky" } }, full, 1100).slice(5, 8),
  ],
  [
    "executions",
    () =>
      executionList(
        {
          executions: [execution, { ...execution, status: "running" }],
          capacity: 64,
          text_limit: 262_144,
          dropped: 0,
        },
        full,
        1100,
      ),
  ],
  [
    "features",
    () =>
      featuresPicture({ ...features, pages: [page] } as unknown as FeaturesResult, { ...full, width: 80 }),
  ],
  ["jobs", () => jobList([...jobs, { ...jobs[0]!, status: "failed" }], { ...full, width: 90 }, 1020)],
  ["stats", () => statsPicture(stats, full).filter((line) => line.includes("busy"))],
  ["sae", () => saePicture(sae(saeReport(5)), 32, full)],
  ["sae-three", () => saePicture(sae(...[1, 2, 3].map((layer) => saeReport(layer))), 32, full).slice(0, 14)],
  ["probe", () => probePicture(probe(probeReport(3, 0.75), probeReport(12, 0.875)), { ...full, width: 80 })],
  [
    "compare",
    () =>
      comparePicture(
        compared(
          trial("One?", 1, 0.5, " a b c", { control: { probability: 0.4 }, ...change(1) }),
          trial("One?", 2, 0.9, " a", { control: { probability: 0.3 } }),
          trial("Two?", 1, 0.1, "", { control: { probability: 0.2 } }),
          trial("Two?", 2, 0.3, " a b x d", { control: { probability: 0.1 } }),
        ),
        full,
      ),
  ],
  ["scores", trail],
];

const recorded = recordedTexts(new URL("./recorded/colours.txt", import.meta.url));
const hex = (channels: string) =>
  `#${channels
    .split(";")
    .map((channel) => Number(channel).toString(16).padStart(2, "0"))
    .join("")}`;
const readable = (text: string) =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours start with an escape character
  text.replace(/\u001b\[([\d;]*)m/g, (_, code: string) => {
    const named = code
      .replace(/;?48;2;(\d+;\d+;\d+)/, (_, channels) => ` on ${hex(channels)}`)
      .replace(/38;2;(\d+;\d+;\d+)/, (_, channels) => hex(channels));
    return code === "0" ? "‹›" : `‹${named}›`;
  });

for (const [name, lines] of drawn) {
  test(`the colours of ${name} are the ones that were looked at`, () => {
    assert.is(readable(lines().join("\n")), recorded.get(name) as string);
  });
}

test("every recorded text is drawn", () => {
  assert.equal(
    [...recorded.keys()],
    drawn.map(([name]) => name),
  );
});

test.run();
