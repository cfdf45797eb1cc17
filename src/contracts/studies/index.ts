export { hiddenCharacters } from "../hidden.js";
export { constantRequestId, ErrorBody, type ErrorCode, errorCodes } from "./errors.js";
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
