export { type ReportedJob, readJob } from "./job.js";
export { renderReport } from "./report.js";
