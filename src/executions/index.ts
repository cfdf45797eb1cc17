export { Histogram, percentiles } from "./durations.js";
export { executionEndpoints } from "./endpoints.js";
export {
  ExecutionRecorder,
  type ExecutionStart,
  type ExecutionTrace,
  type Outcome,
} from "./recorder.js";
