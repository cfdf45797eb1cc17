export { executionEndpoints } from "./endpoints.js";
export { Histogram, percentiles } from "./histogram.js";
export {
  ExecutionRecorder,
  type ExecutionStart,
  type ExecutionTrace,
  type Outcome,
} from "./recorder.js";
