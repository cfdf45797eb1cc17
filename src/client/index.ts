// For programs that do not reference Node's types themselves.
/// <reference types="node" preserve="true" />

export type { JobOf } from "../contracts/index.js";
export type {
  Comment,
  Discussion,
  DraftCreated,
  Entry,
  StudyEnvelope,
  StudyPackage,
  StudyPage,
  StudySummary,
} from "../contracts/studies/index.js";
export type { ArtifactArray } from "./arrays.js";
export type { Answer, ChatDelta, ChatOptions, LiveReport, Question, TokenReport } from "./chat.js";
export { TaplineError, TimeoutError } from "./errors.js";
export { type CompletedJob, Lab, type Settings, type WaitOptions } from "./lab.js";
export { type ListOptions, ResearchClient, type ResearchOptions, type SaveOptions } from "./research.js";
export { DraftMayExistError, ResearchError, type ResearchErrorDetails } from "./research-errors.js";
export { type InspectOptions, ServingModel } from "./serving-model.js";
export type { CallOptions } from "./transport.js";
