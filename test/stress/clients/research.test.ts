import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import type { Scope } from "../../../src/contracts/studies/index.js";
import {
  DraftCreated,
  StudyEnvelope,
  StudyPackage,
  StudyPage,
} from "../../../src/contracts/studies/index.js";
import { developmentCertificate } from "../../../src/studies/dev/certificate.js";
import { startStudies } from "../../clients/support/services.js";
import { pythonSuite } from "../../clients/support/suite.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-clients-"));
const schemas = join(folder, "schemas.json");
writeFileSync(schemas, JSON.stringify({ DraftCreated, StudyEnvelope, StudyPackage, StudyPage }));
const otherCertificate = join(folder, "other.pem");
writeFileSync(otherCertificate, (await developmentCertificate()).cert);
const studies = await startStudies();
try {
  const both: Scope[] = ["public:read", "drafts:write"];
  const tokens = {
    TAPLINE_TEST_TOKEN_ADA: await studies.token("Ada", both),
    TAPLINE_TEST_TOKEN_BEN: await studies.token("Ben", both),
    TAPLINE_TEST_TOKEN_READER: await studies.token("Ada", ["public:read"]),
    TAPLINE_TEST_TOKEN_SPENT: await studies.token("Ben", ["public:read"]),
  };
  await pythonSuite("research", {
    ...tokens,
    TAPLINE_TEST_STUDIES: studies.origin,
    TAPLINE_TEST_CERTIFICATE: studies.certificateFile,
    TAPLINE_TEST_KEY: studies.keyFile,
    TAPLINE_TEST_OTHER_CERTIFICATE: otherCertificate,
    TAPLINE_TEST_SCHEMAS: schemas,
  });
} finally {
  await studies.stop();
  rmSync(folder, { recursive: true });
}
test.run();
