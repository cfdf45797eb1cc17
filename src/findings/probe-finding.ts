import type { ProbeResult } from "../contracts/index.js";
import { listed } from "../text/words.js";
import { cautiously, type Finding, layersOf, leastExamples, rangeOf, share } from "./finding.js";
import { bestLayer } from "./probe.js";
import { spansAbove } from "./shapes.js";

type Report = ProbeResult["reports"][number];

/** The largest p-value that counts as more than chance. */
const significant = 0.05;
/** Without an interval, AUROCs this close are alike. */
const close = 0.02;

/** At which layers a probe tells the classes apart, and whether probes on shuffled labels do, too. */
export function probeFinding(reports: readonly Report[]): Finding {
  if (reports.length === 0) return { says: "There are no reports.", controls: "" };
  const sorted = reports.toSorted((a, b) => a.layer - b.layer);
  const { best } = bestLayer(sorted);
  return {
    says: cautiously(tellsApart(best) ? where(sorted, best) : nowhere(sorted, best), best.test_size),
    controls: controlsOf(best),
  };
}

function tellsApart({ auc, auc_interval, shuffled_labels }: Report): boolean {
  if (shuffled_labels !== undefined) return auc > 0.5 && shuffled_labels.p_auc <= significant;
  return (auc_interval?.low ?? auc) > 0.5;
}

/** The layers whose AUROC is within the best one's interval: any of them could be the best on other texts. */
function where(sorted: readonly Report[], best: Report): string {
  const layers = sorted.map(({ layer }) => layer);
  const least = best.auc_interval?.low ?? best.auc - close;
  const spans = spansAbove(
    sorted.map(({ auc }) => Number(auc >= least)),
    0,
  );
  const alike = sorted.filter(({ auc }) => auc >= least);
  const figures = `(${aurocs(alike)})`;
  if (sorted.length === 1) return `A linear probe at layer ${best.layer} tells the classes apart ${figures}.`;
  if (alike.length === 1)
    return `A linear probe tells the classes apart best at layer ${best.layer} ${figures}.`;
  return alike.length === sorted.length
    ? `A linear probe tells the classes apart about equally well at every layer measured ${figures}.`
    : `A linear probe tells the classes apart best, and about equally well, at ${listed(spans.map((span) => layersOf(span, layers)))} ${figures}.`;
}

function nowhere(sorted: readonly Report[], best: Report): string {
  return sorted.length === 1
    ? `A linear probe at layer ${best.layer} does not tell the classes apart better than chance (${aurocs([best])}).`
    : `A linear probe tells the classes apart at no layer measured better than chance (at most ${aurocs([best])}).`;
}

/** `AUROC 0.93 to 0.95, p = 0.010`. */
function aurocs(reports: readonly Report[]): string {
  const chances = reports.flatMap(({ shuffled_labels }) => shuffled_labels?.p_auc ?? []);
  const range = (values: readonly number[]) => rangeOf(values, (value) => value.toFixed(3));
  const auroc = `AUROC ${range(reports.map(({ auc }) => auc))}`;
  return chances.length === 0 ? auroc : `${auroc}, p = ${range(chances)}`;
}

function controlsOf(best: Report): string {
  const { shuffled_labels: shuffled, test_size: size } = best;
  if (shuffled === undefined) {
    return (
      `A single probe trained on shuffled labels classifies ${share(best.shuffled_label_accuracy)} of the held-out examples ` +
      `correctly, the majority class ${share(best.majority_accuracy)}, this probe ${share(best.accuracy)}: that does not show how ` +
      "far chance alone gets."
    );
  }
  const { permutations, p_auc } = shuffled;
  // The probe itself counts as one.
  const reach = Math.max(0, Math.round(p_auc * (permutations + 1)) - 1);
  const some = `${reach === 0 ? "None" : reach} of ${permutations} probes trained on shuffled labels ${reach > 1 ? "reach" : "reaches"} the AUROC of layer ${best.layer}`;
  if (!tellsApart(best)) return `${some}, so these labels cannot be told from random ones.`;
  return size < leastExamples
    ? `${some}; with ${size} held-out examples that can still be a property of these texts alone.`
    : `${some}, so the classes can be read there; whether the model uses what is read, only an intervention shows.`;
}
