export { hiddenCharacters } from "../../text/hidden.js";
export {
  blockLabels,
  type Outcome,
  outcomes,
  ReproductionBlock,
  RequestBlock,
  ResultBlocks,
} from "./blocks.js";
export { constantRequestId, ErrorBody, type ErrorCode, errorCodes } from "./errors.js";
export { blocksOf, labelledBlocks } from "./fences.js";
export {
  brokenFilter,
  type StudyFilterName,
  type StudyOrder,
  studyFilterNames,
  studyFilters,
  studyOrders,
} from "./filters.js";
export { siteLimits, studiesPort, studyLimits } from "./limits.js";
export { ContextMessage, Entry, licenses, Settings, StudyModel, StudyPackage, Uuid } from "./package.js";
export {
  Author,
  Comment,
  Discussion,
  DraftCreated,
  StudyEnvelope,
  StudyPage,
  StudySummary,
} from "./responses.js";
export { type Scope, scopes } from "./scopes.js";
export { uuidPattern } from "./uuid.js";
