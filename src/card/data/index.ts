import type { CardData } from "../arm-items.js";
import { formatChecks, openPrompts } from "./prompts.js";
import { choiceQuestions } from "./questions.js";
import { heldOutTexts } from "./texts.js";

/** The data that a card is measured on unless files replace it. */
export const bundledData: CardData = {
  texts: heldOutTexts,
  questions: choiceQuestions,
  prompts: openPrompts,
  formats: formatChecks,
};
