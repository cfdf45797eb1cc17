export { type Assembled, assemble, faultsOf, methodText } from "./assemble.js";
export { type Evidence, Gatherer } from "./evidence.js";
export { executionEvidence } from "./execution-evidence.js";
export { jobEvidence } from "./job-evidence.js";
export { type LiveWork, liveEvidence } from "./live-evidence.js";
export {
  type Compared,
  compareFigures,
  enough,
  isPublicModel,
  outcomeOf,
  requestsIn,
  type StudyRequest,
  type Tolerances,
  usualTolerances,
} from "./reproduction.js";
export { type Repeated, reproductionWords, sentences as outcomeSentences } from "./reproduction-words.js";
export { emptyWords, isBlank, readWords, type Words, writeWords } from "./words.js";
