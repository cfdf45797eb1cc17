/** Storing the probe that a job has measured: its numbers, its figures, and refusals. */
import type { ServerResponse } from "node:http";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { HttpError } from "../../src/http/index.js";
import { storeMeasuredProbe } from "../../src/workbench/measured-probe.js";
import type { Seen } from "../client/scripted.js";
import { sendJson } from "../client/scripted.js";
import { probeJob, provenance } from "../report/jobs.js";
import { npyFile, zipOf } from "../support/npz-bytes.js";
import { refusalBy } from "../support/refusal.js";
import { closeAll, open } from "./asking.js";
import type { Answers } from "./parts.js";

const job = "0123456789abcdef0123456789abcdef";
const { result } = probeJob();
const of = (...values: number[]) => Float32Array.from(values);
const arrays = {
  weight: npyFile(of(6, -2), [2]),
  mean: npyFile(of(1, 10), [2]),
  std: npyFile(of(2, 4), [2]),
  bias: npyFile(of(0.5), []),
};

const refusal = refusalBy(HttpError);

test.after.each(closeAll);

/** @returns the parts, and what was stored: its address, header and numbers */
async function opened(changes: object = {}, more: Answers = {}) {
  const stored: {
    path: string;
    header: Record<string, { data_offsets: [number, number] }> & { __metadata__: Record<string, string> };
    numbers: (name: string) => number[];
  }[] = [];
  const parts = await open({
    [`GET /lab/v1/jobs/${job}`]: { id: job, operation: "probe", status: "completed", result, ...changes },
    [`GET /lab/v1/jobs/${job}/artifacts/probe-layer-3.npz`]: (response: ServerResponse) =>
      void response.end(zipOf(arrays)),
    "GET /props": { model_path: provenance.resolved_model.path },
    "PUT /lab/probes/praise": (response: ServerResponse, { path, bytes }: Seen) => {
      const length = Number(bytes.readBigUInt64LE(0));
      const header = JSON.parse(bytes.toString("utf8", 8, 8 + length));
      const numbers = (name: string) => {
        const [start, end] = header[name].data_offsets as [number, number];
        return Array.from({ length: (end - start) / 4 }, (_, at) =>
          bytes.readFloatLE(8 + length + start + 4 * at),
        );
      };
      stored.push({ path, header, numbers });
      sendJson(response, 200, { name: "praise" });
    },
    ...more,
  });
  return {
    parts,
    stored,
    store: (layer = 3) => storeMeasuredProbe(parts.services, { name: "praise", job, layer }),
  };
}

test("stores the job's own numbers and held-out figures", async () => {
  const { stored, store } = await opened();
  assert.equal(await store(), { name: "praise" });
  const [{ header, numbers }] = stored as [(typeof stored)[number]];
  assert.equal(["weight", "mean", "std", "bias"].map(numbers), [[6, -2], [1, 10], [2, 4], [0.5]]);
  const { layer, operation, report, point } = header.__metadata__;
  assert.equal([layer, operation, point], ["3", "probe", undefined]);
  assert.equal(JSON.parse(report as string), { separation: 0.875 });
});

test("records the shuffled-label control and the point, if the job has them", async () => {
  const shuffled_labels = { permutations: 100, auc: { mean: 0.52 } };
  const reports = [{ ...(result as { reports: object[] }).reports[0], shuffled_labels }];
  const { stored, store } = await opened({ result: { ...result, reports, point: "mid" } });
  await store();
  const { report, point } = (stored[0] as (typeof stored)[number]).header.__metadata__;
  assert.equal(
    [JSON.parse(report as string), point],
    [{ separation: 0.875, shuffled_separation: 0.52 }, "mid"],
  );
});

test("refuses jobs that have no such probe, or ran on another model", async () => {
  const said = async (changes: object, layer = 3, more: Answers = {}) => {
    const { store, stored } = await opened(changes, more);
    const sentence = await refusal(() => store(layer));
    assert.is(stored.length, 0);
    return sentence;
  };
  assert.is(await said({}, 4), "Job 01234567 has no probe at layer 4; it has layers 3, 0.");
  assert.is(await said({ operation: "inspect" }), "Job 01234567 trained no probe: it is inspect.");
  const { result: _, ...running } = { result, status: "running" };
  assert.is(await said({ ...running, result: undefined }), "Job 01234567 has no result; it is running.");
  const { path } = provenance.resolved_model;
  assert.is(
    await said({}, 3, { "GET /props": { model_path: "/models/other.gguf" } }),
    `Job 01234567 ran on ${path}; the server has loaded /models/other.gguf. Serve the job's model to use its probe.`,
  );
});

test.run();
