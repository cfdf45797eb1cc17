export { Histogram, percentiles } from "./histogram.js";
export {
  ExecutionRecorder,
  type ExecutionStart,
  type ExecutionTrace,
  type Outcome,
} from "./recorder.js";
export { executionRoutes } from "./routes.js";
