/** Everything the Lab computes: batched experiments, feature extraction and the trainers. */
import { benchExperiments } from "./experiments.js";
import type { Row } from "./figures.js";
import { randomModel } from "./models/random-model.js";
import { benchTrain } from "./train.js";

/** @param only which of F16, Q8_0 and trainers are measured: the experiments take some eight minutes, the trainers two */
export async function benchLab({ quick, only = "" }: { quick: boolean; only?: string }): Promise<Row[]> {
  const wanted = new RegExp(only);
  const rows: Row[] = [];
  if (wanted.test("F16")) {
    rows.push(...(await benchExperiments(await randomModel("f16"), { type: "F16", batchingGains: true })));
  }
  if (wanted.test("Q8_0")) {
    rows.push(...(await benchExperiments(await randomModel("q8_0"), { type: "Q8_0", batchingGains: false })));
  }
  if (wanted.test("trainers")) rows.push(...(await benchTrain({ quick })));
  return rows;
}
