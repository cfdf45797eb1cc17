/** Everything the Lab computes: batched experiments, feature extraction and the trainers. */
import { benchExperiments } from "./experiments.js";
import type { Row } from "./figures.js";
import { randomModel } from "./models/random-model.js";
import { benchTrain } from "./train.js";

export async function benchLab({ quick }: { quick: boolean }): Promise<Row[]> {
  return [
    ...(await benchExperiments(await randomModel("f16"), { type: "F16", batchingGains: true })),
    ...(await benchExperiments(await randomModel("q8_0"), { type: "Q8_0", batchingGains: false })),
    ...(await benchTrain({ quick })),
  ];
}
