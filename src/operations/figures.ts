import type { Findings } from "../report/parts.js";
import { compareFindings } from "./compare/figures.js";
import compareWords from "./compare/words.js";
import type { Operation, Result, ResultOf } from "./contracts.js";
import { driftFindings } from "./drift/figures.js";
import driftWords from "./drift/words.js";
import { explainFindings } from "./explain/figures.js";
import explainWords from "./explain/words.js";
import { extractFindings } from "./extract/figures.js";
import extractWords from "./extract/words.js";
import { featuresFindings } from "./features/figures.js";
import featuresWords from "./features/words.js";
import { graphFindings } from "./graph/figures.js";
import graphWords from "./graph/words.js";
import { inspectFindings } from "./inspect/figures.js";
import inspectWords from "./inspect/words.js";
import { patchSweepFindings } from "./patch_sweep/figures.js";
import patchSweepWords from "./patch_sweep/words.js";
import { probeFindings } from "./probe/figures.js";
import probeWords from "./probe/words.js";
import { saeFindings } from "./sae/figures.js";
import saeWords from "./sae/words.js";
import type { Words } from "./words.js";

type Figures<O extends Operation> = { findings: (result: ResultOf<O>) => Findings; words: Words<O> };

/** How reports, studies and the workbench describe and draw each operation's results. */
const figures: { [O in Operation]: Figures<O> } = {
  inspect: { findings: inspectFindings, words: inspectWords },
  compare: { findings: compareFindings, words: compareWords },
  probe: { findings: probeFindings, words: probeWords },
  sae: { findings: saeFindings, words: saeWords },
  features: { findings: featuresFindings, words: featuresWords },
  extract: { findings: extractFindings, words: extractWords },
  drift: { findings: driftFindings, words: driftWords },
  patch_sweep: { findings: patchSweepFindings, words: patchSweepWords },
  explain: { findings: explainFindings, words: explainWords },
  graph: { findings: graphFindings, words: graphWords },
};

/** The findings and figures of a result. */
export function findingsOf({ operation, result }: { operation: Operation; result: Result }): Findings {
  return figures[operation].findings(result as never);
}

/** An operation's words. The caller passes a configuration and result of the same operation. */
export function wordsOf(operation: Operation): Words<never> {
  return figures[operation].words as Words<never>;
}
