export { checkRecipe } from "./check.js";
export { bodiesOf, type LiveStep } from "./live.js";
export { exchangesOf } from "./live-answer.js";
export { livePage } from "./live-page.js";
export {
  chooseModel,
  figureText,
  type LabTask,
  type LiveTask,
  modelText,
  type Outcome,
  outcomesOf,
  rangeText,
  tasksOf,
} from "./outcome.js";
export { reproductionPage } from "./page.js";
export type { Texts } from "./texts.js";
export { reproductionWords } from "./words.js";
