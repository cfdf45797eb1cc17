export { findingsOf, wordsOf } from "../operations/figures.js";
export type { Answer } from "../operations/words.js";
export { drawFigure, drawingStyle } from "./drawing/index.js";
export { type ReportedJob, readJob } from "./job.js";
export { glimpse, Html, html } from "./markup.js";
export { renderReport } from "./report.js";
export { type Sheet, sheet } from "./sheet.js";
export { style } from "./style.js";
