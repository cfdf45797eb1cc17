import { test } from "uvu";
import * as assert from "uvu/assert";
import { checkMixed } from "./support/check-mixed.js";
import { mixedRequests } from "./support/mixed-requests.js";

test("40 mixed requests: unedited rows equal unedited batches to the bit", async () => {
  const report = await mixedRequests(40, 15);
  checkMixed(report, 40);
  assert.equal(Object.keys(report.computed), ["callback"]);
});

test("the same with edits in the graph", async () => {
  const report = await mixedRequests(40, 15, { edits: "graph", inGraph: true });
  checkMixed(report, 40);
  assert.equal(Object.keys(report.computed), ["graph"]);
});

test("the same with requests that need the callback in between", async () => {
  const report = await mixedRequests(40, 15, { edits: "graph" });
  checkMixed(report, 40);
  assert.ok(
    (report.computed.graph ?? 0) > 0 && (report.computed.callback ?? 0) > 0,
    JSON.stringify(report.computed),
  );
});

test.run();
