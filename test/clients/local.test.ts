import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TSchema } from "typebox";
import { test } from "uvu";
import {
  Capabilities,
  CaptureResult,
  contracts,
  ExtractExample,
  JobSummary,
  LabHealth,
  operations,
  ProbeExample,
  PromptPair,
  SaeExample,
} from "../../src/contracts/index.js";
import { startLocal } from "./support/services.js";
import { pythonSuite } from "./support/suite.js";

const titled = (schema: TSchema) => [(schema as { title?: string }).title, schema];
const submissionsAndResults = operations.flatMap((operation) => {
  const { submission, result } = contracts[operation];
  return [titled(submission), titled(result)];
});
const schemas = {
  ...Object.fromEntries(submissionsAndResults),
  Capabilities,
  CaptureResult,
  ExtractExample,
  Health: LabHealth,
  JobSummary,
  ProbeExample,
  PromptPair,
  SaeExample,
};

const folder = mkdtempSync(join(tmpdir(), "tapline-clients-"));
const file = join(folder, "schemas.json");
writeFileSync(file, JSON.stringify(schemas));
const services = await startLocal();
try {
  await pythonSuite("local", {
    TAPLINE_TEST_LAB: services.lab,
    TAPLINE_TEST_SERVING_PORT: String(services.servingPort),
    TAPLINE_TEST_SCHEMAS: file,
  });
} finally {
  await services.stop();
  rmSync(folder, { recursive: true });
}
test.run();
