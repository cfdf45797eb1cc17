export { apiKeyCheck, keyAccess } from "./api-key.js";
export {
  type AppOptions,
  createApp,
  createRouter,
  methodsOf,
  type RouteContext,
  type Routes,
} from "./app.js";
export { accepted, type BodyOptions, checked, readBytes, readJson } from "./body.js";
export { clientGone } from "./client-gone.js";
export {
  type Answered,
  type Described,
  type Endpoint,
  json,
  type Operation,
  type Parameter,
  parameter,
  pathsOf,
  refusals,
  routesOf,
  within,
} from "./endpoints.js";
export {
  type ErrorBody,
  errorBodyAt,
  HttpError,
  openAiErrorBody,
  plainErrorBody,
  toHttpError,
} from "./errors.js";
export { type FrontPage, frontPage } from "./front-page.js";
export { framesItself } from "./half-close.js";
export {
  closeServer,
  createHttpServer,
  describeBindFailure,
  type Listening,
  type ListenOptions,
  listen,
  urlHost,
} from "./listen.js";
export {
  headerValues,
  isLoopback,
  localAccess,
  localAccessFault,
  remoteFault,
} from "./local-access.js";
export {
  type AllowedOrigins,
  corsHeaders,
  isPreflight,
  sharedAccess,
  sharedAccessFault,
} from "./page-access.js";
export { parseRange, sendFile } from "./send-file.js";
export { underPath } from "./under-path.js";
