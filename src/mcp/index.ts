export { type LabTools, labServer } from "./lab.js";
export { mayDraft } from "./may-draft.js";
export { researchServer } from "./research.js";
export { serveMcp } from "./serve.js";
