import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { researchEnvironment } from "../../src/contracts/research.js";
import type { Scope, StudyPackage } from "../../src/contracts/studies/index.js";
import { startDevelopment } from "../../src/studies/dev/start.js";
import { signInAccount } from "../../src/studies/store/accounts.js";
import { approve } from "../../src/studies/store/approvals.js";
import { addComment } from "../../src/studies/store/discussion.js";
import { saveDraft } from "../../src/studies/store/drafts.js";
import { remove } from "../../src/studies/store/moderation.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import { createToken, sha256Hex } from "../../src/studies/store/tokens.js";

/** The real studies service for development, on a free port, with tokens for the asking. */
export interface ResearchService {
  origin: string;
  caFile: string;
  /** A new token, each with a separate account, so that drafts of tests do not count together. */
  token(scopes?: Scope[]): Promise<string>;
  /** The environment of a client. */
  environment(token: string): Record<string, string>;
  /** Publishes a package as a person would, with a comment for each text. @returns its id */
  publish(study: StudyPackage, comments?: string[]): Promise<string>;
  /** Takes a published study down as an operator would. */
  takeDown(id: string, reason: string): Promise<void>;
  close(): Promise<void>;
}

export async function startResearch({ seedData = true } = {}): Promise<ResearchService> {
  const folder = mkdtempSync(join(tmpdir(), "tapline-research-"));
  const running = await startDevelopment({ folder, port: 0, seedData, env: {}, log: () => {} });
  const { store } = running.service;
  let count = 0;
  const account = async () => {
    count += 1;
    const email = `agent${count}@example.org`;
    const made = await signInAccount(store, {
      issuer: "test",
      subject: email,
      name: `Agent ${count}`,
      email,
      login: null,
    });
    for (const role of ["agent", "publisher"] as const) await approve(store, role, email);
    return made;
  };
  const tokenOf = async (accountId: string, scopes: Scope[]) => {
    const made = await createToken(store, accountId, { name: "test", days: 30, scopes });
    if (made === null) throw new Error("Too many tokens in this test.");
    return made;
  };
  return {
    origin: running.origin,
    caFile: running.certificateFile,
    token: async (scopes = ["public:read", "drafts:write"]) =>
      (await tokenOf((await account()).id, scopes)).token,
    environment: (token) => ({
      [researchEnvironment.url]: running.origin,
      [researchEnvironment.caFile]: running.certificateFile,
      [researchEnvironment.token]: token,
    }),
    async publish(study, comments = []) {
      const author = await account();
      const { id: tokenId } = await tokenOf(author.id, ["drafts:write"]);
      const bytes = Buffer.from(JSON.stringify(study));
      const credential = { accountId: author.id, tokenId, scopes: ["drafts:write"] as Scope[] };
      const saved = await saveDraft(store, credential, bytes, study.title, null);
      if (saved.outcome !== "saved") throw new Error(saved.outcome);
      await publishDraft(store, {
        accountId: author.id,
        draftId: saved.id,
        reviewedSha256: sha256Hex(bytes),
        replaces: null,
      });
      for (const body of comments) {
        await addComment(store, { accountId: author.id, name: author.name }, saved.id, null, body);
      }
      return saved.id;
    },
    async takeDown(id, reason) {
      const done = await remove(store, "operator", { studyId: id, version: null }, reason);
      if (done !== "changed") throw new Error(done);
    },
    async close() {
      await running.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
