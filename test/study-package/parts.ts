/** The smallest entries, jobs and results of a study, for tests that change one thing in them. */
import * as assert from "uvu/assert";
import type { Entry } from "../../src/contracts/studies/index.js";
import type { Evidence } from "../../src/study/evidence.js";
import { jobEvidence } from "../../src/study/index.js";
import { resultBlock } from "../../src/study/result-block.js";
import { inspectJob } from "../report/jobs.js";
import { labJob } from "./evidence.js";

export const uuid = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;

export const evidence = (change: Partial<Evidence> = {}): Evidence => ({
  model: { name: "m", revision: null, runtime: "r" },
  method: "made.",
  ...{ entries: [], spare: [], omissions: [] },
  ...change,
});

export const note = (number: number, length: number): Entry => ({
  id: uuid(number),
  kind: "note",
  title: "",
  note: "n".repeat(length),
});

/** The method and the question in a job's evidence. */
export const asked = (operation: string, config: object) => {
  const job = labJob({ ...inspectJob(), operation } as never, config, {
    status: "cancelled",
    result: undefined,
  });
  const { method, entries } = jobEvidence(job);
  return { method, title: entries[0]?.title, prompt: entries[0]?.prompt, error: entries[1]?.note };
};

/** A result's block, read again; null where not even the least fits. */
export function block(job: ReturnType<typeof inspectJob>) {
  const made = resultBlock(labJob(job, {}));
  if (made === null) return null;
  assert.ok([...made.text].length <= 100_000);
  const [, json = ""] = /^```tapline-result\n(.*)\n```$/.exec(made.text) ?? [];
  const parsed = JSON.parse(json);
  assert.is(parsed.left_out ?? null, made.leftOut);
  return parsed;
}
