import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import {
  Capabilities,
  CaptureResult,
  CompareResult,
  InspectResult,
  JobSummary,
  LabHealth,
  ProbeExample,
  ProbeResult,
  SaeExample,
  SaeResult,
} from "../../src/contracts/index.js";
import { startLocal } from "./support/services.js";
import { pythonSuite } from "./support/suite.js";

const schemas = {
  Capabilities,
  CaptureResult,
  CompareResult,
  Health: LabHealth,
  InspectResult,
  JobSummary,
  ProbeExample,
  ProbeResult,
  SaeExample,
  SaeResult,
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
