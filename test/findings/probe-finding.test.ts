import { test } from "uvu";
import * as assert from "uvu/assert";
import type { ProbeResult } from "../../src/contracts/index.js";
import { probeFinding } from "../../src/findings/probe-finding.js";

type Report = ProbeResult["reports"][number];

/** A report of 40 held-out examples and 99 probes on shuffled labels. */
function report(layer: number, auc: number, p_auc?: number, more: Partial<Report> = {}): Report {
  return {
    ...{ layer, auc, accuracy: 0.8, brier: 0.1, majority_accuracy: 0.5, shuffled_label_accuracy: 0.45 },
    ...{ train_size: 40, test_size: 40, converged: true, iterations: 5, scores: [] },
    ...(p_auc !== undefined && {
      auc_interval: { low: auc - 0.05, high: Math.min(1, auc + 0.05) },
      shuffled_labels: { permutations: 99, p_auc },
    }),
    ...more,
  } as Report;
}

test("one layer: a probe better than chance tells the classes apart", () => {
  assert.equal(probeFinding([report(5, 0.95, 0.01)]), {
    says: "A linear probe at layer 5 tells the classes apart (AUROC 0.950, p = 0.010).",
    controls:
      "None of 99 probes trained on shuffled labels reaches the AUROC of layer 5, so the classes can be read there; whether the model uses what is read, only an intervention shows.",
  });
});

test("layers within the best one's interval are as good as it", () => {
  const reports = [0.6, 0.91, 0.95, 0.93, 0.7, 0.92].map((auc, layer) => report(layer, auc, 0.01));
  assert.is(
    probeFinding(reports.toReversed()).says,
    "A linear probe tells the classes apart best, and about equally well, at layers 1 to 3 and layer 5 (AUROC 0.910 to 0.950, p = 0.010).",
  );
});

test("layers between that were not measured are not claimed", () => {
  const reports = [report(2, 0.6, 0.02), report(4, 0.94, 0.01), report(8, 0.95, 0.02)];
  assert.is(
    probeFinding(reports).says,
    "A linear probe tells the classes apart best, and about equally well, at the measured layers 4 to 8 (AUROC 0.940 to 0.950, p = 0.010 to 0.020).",
  );
});

test("a plateau over all layers has no best layer", () => {
  assert.is(
    probeFinding([report(0, 0.96, 0.01), report(1, 0.97, 0.01)]).says,
    "A linear probe tells the classes apart about equally well at every layer measured (AUROC 0.960 to 0.970, p = 0.010).",
  );
});

test("a best layer that stands out is named", () => {
  assert.match(
    probeFinding([report(0, 0.6, 0.2), report(1, 0.97, 0.01)]).says,
    /apart best at layer 1 \(AUROC/,
  );
});

test("what shuffled labels reach is no finding", () => {
  assert.equal(probeFinding([report(3, 0.61, 0.21), report(4, 0.6, 0.3)]), {
    says: "A linear probe tells the classes apart at no layer measured better than chance (at most AUROC 0.610, p = 0.210).",
    controls:
      "20 of 99 probes trained on shuffled labels reach the AUROC of layer 3, so these labels cannot be told from random ones.",
  });
});

test("below 20 held-out examples, too few comes first", () => {
  const { says, controls } = probeFinding([report(5, 1, 0.01, { test_size: 4 })]);
  assert.is(
    says,
    "Too few held-out examples to conclude (4). A linear probe at layer 5 tells the classes apart (AUROC 1.000, p = 0.010).",
  );
  assert.match(controls, /; with 4 held-out examples that can still be a property of these texts alone\.$/);
  assert.match(probeFinding([report(5, 1, 0.01, { test_size: 19 })]).says, /^Too few/);
  assert.match(probeFinding([report(5, 1, 0.01, { test_size: 20 })]).says, /^A linear probe/);
});

test("without a distribution of shuffled labels, chance stays open", () => {
  const { says, controls } = probeFinding([report(5, 0.95)]);
  assert.is(says, "A linear probe at layer 5 tells the classes apart (AUROC 0.950).");
  assert.is(
    controls,
    "A single probe trained on shuffled labels classifies 45 % of the held-out examples correctly, the majority class 50 %, this probe 80 %: that does not show how far chance alone gets.",
  );
});

test.run();
