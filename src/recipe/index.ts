export { checkRecipe } from "./check.js";
export { type Contrasted, contrasted } from "./contrast.js";
export { contrastPage } from "./contrast-page.js";
export { bodiesOf, type LiveStep } from "./live.js";
export { exchangesOf } from "./live-answer.js";
export { livePage } from "./live-page.js";
export {
  type ContrastTask,
  chooseModel,
  type LabTask,
  type LiveTask,
  modelText,
  type Outcome,
  outcomesOf,
  pickedBy,
  rangeText,
  tasksOf,
  withPicked,
} from "./outcome.js";
export { reproductionPage } from "./page.js";
export { variantsOf } from "./steps.js";
export type { Texts } from "./texts.js";
export { reproductionWords } from "./words.js";
