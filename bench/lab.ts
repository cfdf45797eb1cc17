/** Everything the Lab computes: batched experiments, feature extraction and the trainers. */
import { benchExperiments } from "./experiments.js";
import type { Row } from "./figures.js";
import { randomModel } from "./models/random-model.js";
import { benchTrain } from "./train.js";

export async function benchLab({ quick }: { quick: boolean }): Promise<Row[]> {
  return [...(await benchExperiments(await randomModel("q8_0"))), ...(await benchTrain({ quick }))];
}
