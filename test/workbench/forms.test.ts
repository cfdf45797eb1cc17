/** What the forms of Patch and Steer ask for, what they show of a job that was asked, and what their pictures' cells are. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { CompareConfig, PatchSweepConfig, PatchSweepResult } from "../../src/contracts/index.js";
import { checkSubmission } from "../../src/contracts/index.js";
import type { Figure } from "../../src/findings/figure.js";
import { findingsOf } from "../../src/report/index.js";
import {
  type PatchForm,
  patchForm,
  patchFormOf,
  patchRequest,
  spansOf,
} from "../../src/workbench/page/patch-request.js";
import { effectOf, siteDetail, siteIn, siteOf, siteQuery } from "../../src/workbench/page/patch-site.js";
import {
  doseRequest,
  gridJobs,
  gridLayers,
  gridPath,
  steerForm,
  steerFormOf,
} from "../../src/workbench/page/steer-request.js";
import { patchJob } from "../report/jobs.js";

/** What a form is refused with. */
const fault = (ask: () => unknown): string => {
  try {
    ask();
  } catch (error) {
    return (error as Error).message;
  }
  return assert.unreachable("it was taken") as never;
};

const form: PatchForm = { ...patchForm, clean: "a b", corrupted: "a c" };
const asked = (change: Partial<PatchForm> = {}) => patchRequest({ ...form, ...change });

test("patch: the form asks for what it says, and the Lab takes it", () => {
  assert.equal(asked(), {
    ...{ operation: "patch_sweep", clean: "a b", corrupted: "a c", direction: "denoise", controls: true },
    points: ["block_out"],
  });
  assert.equal(asked({ points: ["attn_out", "head_out"], heads: "0, 2-3", layers: "4-5", controls: false }), {
    ...{ operation: "patch_sweep", clean: "a b", corrupted: "a c", direction: "denoise", controls: false },
    ...{ points: ["attn_out", "head_out"], heads: [0, 2, 3], layers: [4, 5] },
  });
  assert.is(asked({ heads: "1" }).heads, undefined, "heads belong to head_out alone");
  assert.equal(asked({ where: "chosen", tokens: "0, -1" }).positions, [0, -1]);
  assert.is(asked({ where: "aligned" }).positions, "aligned");
  assert.equal(asked({ several: true, clean: "a\n\nb\n", corrupted: "c\nd" }).pairs, [
    { clean: "a", corrupted: "c" },
    { clean: "b", corrupted: "d" },
  ]);
  const all: Partial<PatchForm>[] = [
    {},
    { points: ["mid", "ffn_out"], layers: "0, 3" },
    { points: ["head_out"], heads: "1", where: "chosen", tokens: "-1" },
    { where: "aligned", clean: "[[a]] b", corrupted: "[[a a]] b" },
    { several: true, clean: "a\nb", corrupted: "c\nd", direction: "noise" },
  ];
  for (const change of all) {
    const config = checkSubmission({ model: "demo", ...asked(change) }) as PatchSweepConfig;
    // Whoever opens the job's address finds the form as it was.
    assert.equal(patchRequest(patchFormOf(config)), asked(change));
  }
});

test("patch: each missing field of the form is named in a sentence", () => {
  assert.is(
    fault(() => asked({ points: [] })),
    "Select at least one thing to patch.",
  );
  assert.is(
    fault(() => asked({ layers: "x" })),
    "Layers: expected numbers and ranges such as 0, 3, 5-7; got x.",
  );
  // A range that runs backwards would name none, which stands for all.
  assert.is(
    fault(() => asked({ layers: "7-5" })),
    "Layers: expected numbers and ranges such as 0, 3, 5-7; got 7-5.",
  );
  assert.equal(asked({ layers: "5-5" }).layers, [5]);
  assert.is(
    fault(() => asked({ points: ["head_out"], heads: "first" })),
    "Heads: expected numbers and ranges such as 0, 3, 5-7; got first.",
  );
  assert.is(
    fault(() => asked({ where: "chosen", tokens: "1.5" })),
    "Tokens: expected integers such as 0, 3, -1; got 1.5.",
  );
  assert.is(
    fault(() => asked({ several: true, clean: "a\nb", corrupted: "c" })),
    "Each line is one of a pair: got 2 clean and 1 corrupted lines; the numbers must match.",
  );
});

test("patch: marked spans stand against their like before anything runs, or the page says what is wrong", () => {
  const marked = (clean: string, corrupted: string) =>
    spansOf({ ...form, where: "aligned", clean, corrupted });
  assert.equal(marked("[[The Eiffel Tower]] is in[[ Paris]]", "[[It]] is in[[ the city of Rome]]"), [
    { position: 0, clean: "The Eiffel Tower", corrupted: "It" },
    { position: 1, clean: " Paris", corrupted: " the city of Rome" },
  ]);
  assert.is(
    fault(() => marked("[[a]] b", "[[a]] [[b]]")),
    "The clean text has 1 marked span, the corrupted one 2; the numbers must match.",
  );
  assert.match(
    fault(() => marked("a b", "[[a]] b")),
    /^The clean text contains no span: with aligned positions, mark each span to patch with \[\[ and \]\]\.$/,
  );
  assert.is(
    fault(() => marked("[[a b", "[[a]] b")),
    "The clean text opens a span with [[ but does not close it.",
  );
});

const result = patchJob().result as PatchSweepResult;
const figures = (of: PatchSweepResult) =>
  findingsOf({ ...patchJob(), result: of }).parts.filter((part): part is Figure => "chart" in part);

test("patch: a cell of any map is a site, an address keeps it, and the same cell is found again", () => {
  const heads: PatchSweepResult = {
    ...result,
    points: ["mid", "head_out"],
    heads: [0, 2],
    sites: [0, 3].flatMap((layer) =>
      [undefined, 0, 2].flatMap((head) =>
        result.sites
          .filter((site) => site.layer === layer)
          .map((site) => ({
            ...site,
            ...(head === undefined ? { point: "mid" as const } : { point: "head_out" as const, head }),
          })),
      ),
    ),
  };
  const maps = figures(heads);
  assert.equal(
    maps.map(({ id }) => id),
    ["patch-map-mid", "patch-map-head-out", "patch-heads", "patch-by-layer"],
  );
  for (const map of maps.slice(0, 3)) {
    for (const row of map.rows.keys()) {
      const site = siteOf(map, row);
      assert.ok(site);
      const query = new URLSearchParams();
      for (const [name, value] of Object.entries(siteQuery(site))) {
        if (value !== undefined) query.set(name, String(value));
      }
      assert.equal(siteIn(query), site);
      assert.is(siteDetail(maps, site), map.details[row], `${map.id} ${row}`);
    }
  }
  // Row 4 of the first map: layer 3 at token 1.
  assert.equal(siteOf(maps[0] as Figure, 4), { layer: 3, position: 1, point: "mid" });
  assert.equal(siteOf(maps[1] as Figure, 1), { layer: 0, position: 1, point: "head_out", head: 2 });
  assert.is(siteOf(maps[3] as Figure, 0), undefined, "a line is no site");
  assert.is(siteIn(new URLSearchParams("l=1&t=0&p=nowhere")), undefined);
  assert.is(siteIn(new URLSearchParams("l=x&t=0")), undefined);
});

test("patch: a site's effect puts the donor's state where the site is, of heads and marked spans, too", () => {
  const body = (site: Parameters<typeof effectOf>[1], change: Partial<PatchSweepResult> = {}, more = {}) =>
    effectOf(
      {
        model: "demo",
        config: { ...patchJob().config, ...more } as unknown as PatchSweepConfig,
        result: { ...result, ...change },
      },
      site,
    );
  const plain = body({ layer: 3, position: 1, point: "block_out" });
  assert.is(plain.donor, "The cat", "the clean text up to there");
  assert.equal(plain.tokens, [0, 1]);
  assert.equal(plain.body, {
    ...{ operation: "compare", model: "demo", prompt: "The dog sat", donor_prompt: "The cat" },
    ...{ intervention: "patch", layers: [3], positions: [[1, 1]], strengths: [1] },
    ...{ controls: true, max_tokens: 8, target_token: " The" },
  });
  const head = body({ layer: 0, position: -1, point: "head_out", head: 2 }, { direction: "noise" });
  assert.is(head.body.prompt, "The cat sat");
  assert.equal([head.body.point, head.body.heads, head.body.positions], ["head_out", [2], [[2, 2]]]);
  // Spans: their last tokens, which stand at different places.
  const [pair] = result.pairs as [PatchSweepResult["pairs"][number]];
  const pairs = [
    {
      ...pair,
      clean: { ...pair.clean, spans: [{ text: " cat", position: 1 }] },
      corrupted: {
        ...pair.corrupted,
        tokens: ["The", " big", " dog", " sat"],
        token_ids: [0, 7, 8, 2],
        spans: [{ text: " big dog", position: 2 }],
      },
    },
  ];
  const marked = { clean: "The[[ cat]] sat", corrupted: "The[[ big dog]] sat", positions: "aligned" };
  const span = body({ layer: 0, position: 0, point: "block_out" }, { pairs }, marked);
  assert.equal([span.donor, span.body.prompt, span.body.positions], ["The cat", "The big dog sat", [[2, 2]]]);
});

test("steer: one comparison a layer, each as the Lab takes it, and the form comes back from it", () => {
  const request = doseRequest({ ...steerForm, strengths: "-0.4, 0 0.4", target: " Oslo" });
  const config = checkSubmission({ model: "demo", ...request, layers: [3] }) as CompareConfig;
  assert.equal(config.strengths, [-0.4, 0, 0.4]);
  assert.equal([config.layers, config.controls, config.strength_unit], [[3], true, "row_norm"]);
  assert.is(config.prompts, undefined);
  assert.equal(doseRequest({ ...steerForm, ...steerFormOf(config) }), request);
  const several = doseRequest({ ...steerForm, prompts: "a\n\nb" });
  assert.equal([several.prompt, several.prompts], ["a", ["a", "b"]]);
  assert.is(
    fault(() => doseRequest({ ...steerForm, strengths: "much" })),
    "Strengths: expected numbers such as -0.4, 0, 0.4; got much.",
  );
  assert.is(
    fault(() => doseRequest({ ...steerForm, prompts: " \n" })),
    "Test prompts: enter at least one.",
  );
  assert.equal(gridLayers(steerForm, [1, 2]), [1, 2]);
  assert.equal(gridLayers({ ...steerForm, layers: "0, 4-5" }, [1]), [0, 4, 5]);
  assert.is(
    fault(() => gridLayers({ ...steerForm, layers: "0-12" }, [])),
    "Layers: at most 12 per grid (one job each), got 13.",
  );
});

test("steer: the address lists a grid's jobs and accepts nothing else", () => {
  const ids = ["a", "b", "c"].map((letter) => letter.repeat(32));
  const path = gridPath(ids);
  assert.is(path, `/steer/${ids[0]}?with=${ids[1]},${ids[2]}`);
  const query = new URLSearchParams(path.split("?")[1]);
  assert.equal(gridJobs(ids[0], query), ids);
  assert.is(gridPath([ids[0] as string]), `/steer/${ids[0]}`);
  assert.equal(gridJobs(ids[0], new URLSearchParams(`with=x,${ids[0]},../`)), [ids[0]]);
  assert.equal(gridJobs(undefined, query), []);
});

test.run();
