export { taplineHome } from "../files/home.js";
export { type LabService, type LabServiceOptions, startLab } from "./service.js";
