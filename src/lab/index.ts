export { taplineHome } from "./folders.js";
export { type LabService, type LabServiceOptions, startLab } from "./service.js";
