import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import type { Scope } from "../../src/contracts/studies/index.js";
import { DraftCreated, StudyEnvelope, StudyPackage, StudyPage } from "../../src/contracts/studies/index.js";
import { developmentCertificate } from "../../src/studies/dev/certificate.js";
import { signInAccount } from "../../src/studies/store/accounts.js";
import { openStore, type Store } from "../../src/studies/store/store.js";
import { createToken } from "../../src/studies/store/tokens.js";
import { startStudies } from "./support/services.js";
import { pythonSuite } from "./support/suite.js";

/** A token of an account, made in the database of the running service. */
async function token(store: Store, name: string, scopes: Scope[]): Promise<string> {
  const email = `${name.toLowerCase()}@example.org`;
  const account = await signInAccount(store, { issuer: "test", subject: name, name, email, login: null });
  const made = await createToken(store, account.id, { name: "test", days: 1, scopes });
  if (made === null) throw new Error(`${name} has too many tokens.`);
  return made.token;
}

const folder = mkdtempSync(join(tmpdir(), "tapline-clients-"));
const schemas = join(folder, "schemas.json");
writeFileSync(schemas, JSON.stringify({ DraftCreated, StudyEnvelope, StudyPackage, StudyPage }));
const otherCertificate = join(folder, "other.pem");
writeFileSync(otherCertificate, (await developmentCertificate()).cert);
const studies = await startStudies();
try {
  const store = await openStore(studies.database);
  const both: Scope[] = ["public:read", "drafts:write"];
  const tokens = {
    TAPLINE_TEST_TOKEN_ADA: await token(store, "Ada", both),
    TAPLINE_TEST_TOKEN_BEN: await token(store, "Ben", both),
    TAPLINE_TEST_TOKEN_READER: await token(store, "Ada", ["public:read"]),
    TAPLINE_TEST_TOKEN_SPENT: await token(store, "Ben", ["public:read"]),
  };
  await store.close();
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
