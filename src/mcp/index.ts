export { type LabTools, labServer } from "./lab.js";
export { researchServer } from "./research.js";
export { serveMcp } from "./serve.js";
