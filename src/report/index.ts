export { drawFigure, drawingStyle } from "./drawing/index.js";
export { findingsOf } from "./findings.js";
export { type ReportedJob, readJob } from "./job.js";
export { glimpse, Html } from "./markup.js";
export { renderReport } from "./report.js";
