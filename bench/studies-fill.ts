/** Fills a database with studies for the benchmark, in bulk and past the publication rules. */
import { createHash, randomUUID } from "node:crypto";
import { operations } from "../src/contracts/index.js";
import type { StudyPackage } from "../src/contracts/studies/index.js";
import { gatherStatistics, indexStudies } from "../src/studies/backup.js";
import { signInAccount } from "../src/studies/store/accounts.js";
import { findMeasurements } from "../src/studies/store/measurements.js";
import { summaryOf } from "../src/studies/store/publish.js";
import type { Store } from "../src/studies/store/store.js";
import { newToken, sha256Hex } from "../src/studies/store/tokens.js";
import { formOf, hashOf, quantsBlock, quantsResult } from "../test/studies/support/measurements.js";
import { samplePackage } from "../test/studies/support/packages.js";
import { studyWithResults } from "../test/studies/support/results.js";
import { TestRandom } from "../test/support/random.js";

/** The ten words that nearly every study has; the others are `word10`, `word11` and so on, ever rarer. */
const frequent = [
  "model",
  "layer",
  "prompt",
  "steering",
  "probe",
  "language",
  "attention",
  "tokens",
  "residual",
  "block",
];

/** The word of a place in the order of how common words are. */
export function wordAt(rank: number): string {
  return frequent[rank] ?? `word${rank}`;
}

/**
 * Studies with words as frequent as in a language: the word at rank r is drawn with a probability near 1 / r². Each
 * has a unique word, `rareN`; the last one is 1 MB long, and the one before it has results of all operations to draw.
 */
export async function fill(store: Store, count: number): Promise<void> {
  const random = new TestRandom(7);
  const text = (words: number) =>
    Array.from({ length: words }, () => wordAt(Math.floor(1 / (random.uniform() + 1e-5)))).join(" ");
  const names = ["Bench", ...Array.from({ length: measuringAuthors }, (_, at) => `Measurer ${at + 1}`)];
  const accounts: { id: string; name: string }[] = [];
  for (const name of names) {
    const identity = { issuer: "bench", subject: name, name, email: null, login: null };
    accounts.push({ id: (await signInAccount(store, identity)).id, name });
  }
  const [first, ...measuring] = accounts as [(typeof accounts)[0], ...typeof accounts];
  const now = Date.now();
  for (let start = 0; start < count; start += 500) {
    const made = Array.from({ length: Math.min(500, count - start) }, (_, place) => {
      const index = start + place;
      const study: StudyPackage = samplePackage({
        title: text(8),
        question: text(25),
        method: `${text(80)} rare${index}`,
        finding: `${text(60)}${index % 4 === 0 ? measured(operations[index % 5] as string) : ""}`,
        ...(isMeasuring(index) ? { entries: [measurement(index)] } : {}),
        license: index % 10 === 0 ? "CC0-1.0" : "CC-BY-4.0",
        model: { name: `Example-${index % 30}B`, runtime: "tapline" },
        ...(index === count - 1 ? large() : {}),
        ...(index === count - 2 ? { entries: studyWithResults().entries } : {}),
      });
      const published_at = now - count + index;
      const times = { created_at: published_at, published_at };
      // Models are measured in turn, and each of them by many authors.
      const author = isMeasuring(index) ? measuring[Math.floor(index / 30) % measuring.length] : undefined;
      return {
        id: randomUUID(),
        study,
        bytes: Buffer.from(JSON.stringify(study)),
        times,
        author: author ?? first,
      };
    });
    const numbers = { version: 1, upvotes: 0, comment_count: 0 };
    await store.db.transaction().execute(async (trx) => {
      await trx
        .insertInto("studies")
        .values(
          made.map(({ id, study, times, author }) => ({
            id,
            account_id: author.id,
            author: author.name,
            ...numbers,
            ...times,
            ...summaryOf(study),
          })),
        )
        .execute();
      await trx
        .insertInto("versions")
        .values(
          made.map(({ id, bytes, times }) => ({
            study_id: id,
            version: 1,
            sha256: createHash("sha256").update(bytes).digest("hex"),
            package: bytes,
            ...times,
          })),
        )
        .execute();
    });
  }
  await store.db.updateTable("counters").set({ value: count }).where("name", "=", "studies").execute();
  await store.db.updateTable("counters").set({ value: now }).where("name", "=", "published_at").execute();
  await store.db.transaction().execute((trx) => indexStudies(store, trx));
  await findMeasurements(store.db);
  await gatherStatistics(store);
}

/** Models that a tenth of the studies measured; half of these measured the first. */
export const measuredModels = 100;
/** Who measured them. */
const measuringAuthors = 12;
const isMeasuring = (index: number) => index % 10 === 3;

/** The hash of a measured model. */
export const modelAt = (index: number) => hashOf(`measured ${index}`);

/** A result of `tapline quants` on five forms of a model. */
function measurement(index: number): StudyPackage["entries"][0] {
  const turn = Math.floor(index / 10);
  const model = turn % 2 === 0 ? 0 : Math.floor(turn / 2) % measuredModels;
  const forms = ["Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q3_K_M"].map((name) => formOf(`${name} of ${model}`));
  const note = quantsBlock(quantsResult(`measured ${model}`, `result ${index}`, forms));
  return { id: randomUUID(), kind: "result", title: "Table of 5 forms", note };
}

/** Enough of a result that a study counts among those of a method; drawn are those of the last but one. */
function measured(operation: string): string {
  return `\n\n\`\`\`tapline-result\n${JSON.stringify({ schemaVersion: 1, operation })}\n\`\`\``;
}

function large(): Partial<StudyPackage> {
  return {
    finding: "x".repeat(100_000),
    entries: Array.from({ length: 9 }, () => ({
      id: randomUUID(),
      kind: "result" as const,
      title: "",
      answer: "a".repeat(98_000),
    })),
  };
}

/** New tokens of the benchmark's account. */
export async function makeTokens(store: Store, count: number): Promise<string[]> {
  const account = await store.db.selectFrom("accounts").select("id").executeTakeFirstOrThrow();
  const tokens = Array.from({ length: count }, newToken);
  const now = Date.now();
  for (let start = 0; start < count; start += 500) {
    await store.db
      .insertInto("tokens")
      .values(
        tokens.slice(start, start + 500).map((token) => ({
          id: randomUUID(),
          account_id: account.id,
          name: "bench",
          hash: sha256Hex(token),
          prefix: token.slice(0, 8),
          last4: token.slice(-4),
          scopes: "public:read",
          created_at: now,
          expires_at: now + 86_400_000,
          revoked_at: null,
          last_used_at: null,
          recent: "[]",
        })),
      )
      .execute();
  }
  return tokens;
}
