export { taplineHome } from "../files/home.js";
export { type LabService, type LabServiceOptions, startLab } from "./service.js";
export { longestDeadlineMs } from "./supervisor.js";
