export { checkRecipe } from "./check.js";
export { chooseModel, figureText, type Outcome, outcomesOf, rangeText, requestsOf } from "./outcome.js";
export { reproductionPage } from "./page.js";
export { reproductionWords } from "./words.js";
