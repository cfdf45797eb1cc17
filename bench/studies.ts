/**
 * The studies service under load: autocannon against the whole of it, HTTPS and token checks included, on both
 * databases. The load generator shares the machine with service and database, so the rates are floors.
 */
import { type ChildProcess, fork } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import autocannon from "autocannon";
import type { StudyPackage } from "../src/contracts/studies/index.js";
import { gatherStatistics } from "../src/studies/backup.js";
import { signInAccount } from "../src/studies/store/accounts.js";
import { searchEntry, summaryOf } from "../src/studies/store/publish.js";
import { openStore, type Store } from "../src/studies/store/store.js";
import { newToken, sha256Hex } from "../src/studies/store/tokens.js";
import { samplePackage } from "../test/studies/support/packages.js";
import { startPostgres } from "../test/studies/support/postgres.js";
import { TestRandom } from "../test/support/random.js";
import { type Row, row } from "./figures.js";

const server = fileURLToPath(new URL("./studies-server.ts", import.meta.url));
const seconds = 8;
const connections = 16;
/** Tokens that requests take in turn: each has 60 a minute, so all rounds together need many. */
const tokenCount = 4000;

/** 100,000 studies in each database; a tenth of that where it has to be quick. */
export function benchStudies({ quick }: { quick: boolean }): Promise<Row[]> {
  return benchCount(quick ? 10_000 : 100_000);
}

async function benchCount(count: number): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "tapline-bench-"));
  const cluster = await startPostgres(true);
  const rows: Row[] = [];
  try {
    rows.push(...(await benchDatabase("SQLite", join(folder, "studies.db"), count)));
    if (cluster !== null) rows.push(...(await benchDatabase("PostgreSQL", cluster.url("bench"), count)));
  } finally {
    await cluster?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  return rows;
}

async function benchDatabase(name: string, location: string, count: number): Promise<Row[]> {
  const store = await openStore(location);
  const { tokens, large } = await fill(store, count);
  await store.close();
  const child = fork(server, [location], { execArgv: ["--import", "tsx"] });
  const { port, cert } = await next<{ port: number; cert: string }>(child);
  const rows: Row[] = [];
  let used = 0;
  const load = async (what: string, path: () => string, goals: { least?: number; most?: number }) => {
    const result = await autocannon({
      url: `https://localhost:${port}`,
      connections,
      duration: seconds,
      tlsOptions: { ca: cert },
      requests: [
        {
          setupRequest(request) {
            used += 1;
            const authorization = `Bearer ${tokens[used % tokens.length]}`;
            return { ...request, path: path(), headers: { ...request.headers, authorization } };
          },
        },
      ],
    });
    if (result.non2xx > 0)
      throw new Error(`${what}: ${result.non2xx} of ${result.requests.total} were refused.`);
    rows.push(
      row(`${name}, ${count} studies, ${what}: rate`, [result.requests.average], "1/s", {
        least: goals.least,
      }),
    );
    rows.push(
      row(`${name}, ${count} studies, ${what}: p99`, [result.latency.p99], "ms", { most: goals.most }),
    );
  };
  try {
    const list = "/api/v1/studies";
    let turns = 0;
    const turn = () => {
      turns += 1;
      return turns;
    };
    // Every other word differs, so that no kept answer is measured.
    await load("first page", () => list, { least: 1000, most: 40 });
    await load("rare word", () => `${list}?q=rare${(turn() * 37) % count}`, { least: 1000, most: 40 });
    await load("common word", () => `${list}?q=${common[turn() % common.length]}&offset=${turns % 50}`, {
      most: 250,
    });
    await load("offset near 10,000", () => `${list}?offset=${Math.min(10_000, count) - (turn() % 500)}`, {
      most: 100,
    });
    await load("1 MB study", () => `${list}/${large}`, {});
    child.send("memory");
    rows.push(
      row(`${name}, ${count} studies: memory`, [(await next<number>(child)) / 1e6], "MB", { most: 300 }),
    );
  } finally {
    child.kill();
  }
  return rows;
}

function next<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    child.once("message", (message) => resolve(message as T));
    child.once("exit", (code) => reject(new Error(`The service ended with ${code}.`)));
  });
}

const common = [
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

/** Studies with words as frequent as in a language, written in batches past the publication rules. */
async function fill(store: Store, count: number): Promise<{ tokens: string[]; large: string }> {
  const random = new TestRandom(7);
  const word = () => {
    const rank = Math.floor(1 / (random.uniform() + 1e-5));
    return rank < common.length ? (common[rank] as string) : `word${rank}`;
  };
  const text = (words: number) => Array.from({ length: words }, word).join(" ");
  const account = await signInAccount(store, {
    issuer: "bench",
    subject: "b",
    name: "Bench",
    email: null,
    login: null,
  });
  const now = Date.now();
  let large = "";
  for (let start = 0; start < count; start += 500) {
    await store.db.transaction().execute(async (trx) => {
      for (let index = start; index < Math.min(count, start + 500); index += 1) {
        const study: StudyPackage = samplePackage({
          title: text(8),
          question: text(25),
          method: `${text(80)} rare${index}`,
          finding: index === count - 1 ? "x".repeat(100_000) : text(60),
        });
        if (index === count - 1) {
          study.entries = Array.from({ length: 9 }, () => ({
            id: randomUUID(),
            kind: "result",
            title: "",
            answer: "a".repeat(98_000),
          }));
        }
        const bytes = Buffer.from(JSON.stringify(study));
        const id = randomUUID();
        if (index === count - 1) large = id;
        const publishedAt = now - count + index;
        const times = { created_at: publishedAt, published_at: publishedAt };
        await trx
          .insertInto("studies")
          .values({
            id,
            account_id: account.id,
            author: "Bench",
            version: 1,
            upvotes: 0,
            comment_count: 0,
            ...times,
            ...summaryOf(study),
          })
          .execute();
        const sha256 = createHash("sha256").update(bytes).digest("hex");
        await trx
          .insertInto("versions")
          .values({ study_id: id, version: 1, sha256, package: bytes, ...times })
          .execute();
        await store.dialect.search.add(trx, publishedAt, searchEntry(study));
      }
    });
  }
  await store.db.updateTable("counters").set({ value: count }).where("name", "=", "studies").execute();
  await store.db.updateTable("counters").set({ value: now }).where("name", "=", "published_at").execute();
  const tokens = Array.from({ length: tokenCount }, newToken);
  for (let start = 0; start < tokens.length; start += 500) {
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
  await gatherStatistics(store);
  return { tokens, large };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const one of await benchCount(Number(process.argv[2] ?? 100_000))) {
    const goal = one.goal === undefined ? "" : ` (goal ${one.goal}${one.ok ? "" : ", missed"})`;
    console.log(`${one.name}: ${one.value.toFixed(1)} ${one.unit}${goal}`);
  }
}
