/**
 * The studies service under load: autocannon against the whole of it, HTTPS and token checks included, on both
 * databases. The load generator shares the machine with service and database, so the rates are floors.
 */
import { type ChildProcess, fork } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import autocannon from "autocannon";
import { isCompiled } from "../scripts/build/compiled.js";
import { openStore } from "../src/studies/store/open.js";
import { listStudies } from "../src/studies/store/studies.js";
import { startPostgres } from "../test/studies/support/postgres.js";
import { moduleAt } from "../test/support/program.js";
import { type Row, row } from "./figures.js";
import { fill, makeTokens, measuredModels, modelAt, wordAt } from "./studies-fill.js";
import { besideReview, hardDrafts } from "./studies-hard-drafts.js";

const server = fileURLToPath(new URL("./studies-server.js", import.meta.url));
/** Of each figure, of which the median counts: a second in which the machine did something else is not the service's. */
const rounds = 3;
const seconds = 3;
const connections = 16;
/** Tokens that requests take in turn: each has 60 a minute, so all rounds together need many. */
const tokenCount = 4000;

/** 100,000 studies in each database; a tenth of that where it has to be quick. */
export function benchStudies({ quick }: { quick: boolean }): Promise<Row[]> {
  return benchCount(quick ? 10_000 : 100_000);
}

type Told = (row: Row) => void;

/**
 * @param kept folder whose databases are used again if it has any, and stay there
 * @param told receives each figure as soon as it is known
 * @param only `sqlite` or `postgresql`; both unless told otherwise
 */
async function benchCount(
  count: number,
  kept?: string,
  told: Told = () => {},
  only?: string,
): Promise<Row[]> {
  const folder = kept ?? mkdtempSync(join(tmpdir(), "tapline-bench-"));
  const cluster = await startPostgres({ durable: true, kept: kept && join(kept, "postgresql") });
  const rows: Row[] = [];
  try {
    if (only !== "postgresql")
      rows.push(...(await benchDatabase("SQLite", join(folder, "studies.db"), count, told)));
    if (cluster !== null && only !== "sqlite")
      rows.push(...(await benchDatabase("PostgreSQL", cluster.url("bench"), count, told)));
  } finally {
    await cluster?.stop();
    if (kept === undefined) rmSync(folder, { recursive: true, force: true });
  }
  return rows;
}

async function benchDatabase(name: string, location: string, count: number, told: Told): Promise<Row[]> {
  const store = await openStore(location);
  const before = (await listStudies(store, "", 1, 0)).total;
  if (before === 0) await fill(store, count);
  else if (before !== count) throw new Error(`${location} holds ${before} studies, not ${count}.`);
  const tokens = await makeTokens(store, tokenCount);
  const [large, drawn] = (await listStudies(store, "", 2, 0)).rows.map(({ id }) => id);
  const hard = await hardDrafts(store);
  await store.close();
  if (!isCompiled())
    throw new Error("Memory is measured as people run the service: npm run build comes first.");
  const modules = ["studies/dev/certificate", "studies/start"].map(moduleAt);
  const child = fork(server, [location, ...modules], { execArgv: [] });
  const { port, cert } = await next<{ port: number; cert: string }>(child);
  const rows: Row[] = [];
  const add = (figure: Row) => {
    rows.push(figure);
    told(figure);
  };
  let used = 0;
  const load = async (what: string, path: () => string, goals: { least?: number; most?: number }) => {
    const rates: number[] = [];
    const latest: number[] = [];
    for (let round = 0; round < rounds; round++) {
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
      rates.push(result.requests.average);
      latest.push(result.latency.p99);
    }
    add(
      row(`${name}, ${count} studies, ${what}: rate`, rates, "1/s", {
        least: goals.least,
      }),
    );
    add(row(`${name}, ${count} studies, ${what}: p99`, latest, "ms", { most: goals.most }));
  };
  try {
    const list = "/api/v1/studies";
    let turns = 0;
    const turn = () => {
      turns += 1;
      return turns;
    };
    // Every request asks for something else, so that no kept answer is measured.
    await load("first page", () => list, { least: 1000, most: 40 });
    // With as many digits as any other, so that it is not a prefix of another word.
    const rare = () => count / 10 + ((turn() * 37) % (count * 0.9));
    await load("rare word", () => `${list}?q=rare${rare()}`, { least: 1000, most: 40 });
    await load("common words", () => `${list}?q=${commonWords(turn())}`, { most: 250 });
    await load(
      "common words, an author, by upvotes",
      () => `${list}?q=${commonWords(turn())}&author=bench&sort=top`,
      {
        most: 250,
      },
    );
    await load("front page of the site", () => "/", { least: 1000, most: 40 });
    // Pages without an earlier request: found, counted by facets and made.
    await load(
      "search on the site with counts beside facets",
      () => `/?q=${commonWords(turn())}&license=CC-BY-4.0&model=Example-7B`,
      { most: 250 },
    );
    const most = count > 10_000 ? 250 : 100;
    await load("list of measured models", () => `/models?page=${1 + (turn() % 5)}`, { most });
    await load(
      "page of a measured model",
      () => `/models/${modelAt(turn() % Math.min(measuredModels, count / 20))}`,
      { most },
    );
    await load("page of a study with figures", () => `/studies/${drawn}`, { least: 1000, most: 250 });
    await load("offset near 10,000", () => `${list}?offset=${Math.min(10_000, count) - (turn() % 500)}`, {
      most: 100,
    });
    const pages = { ...hard.paths, "the page of a model with the most studies": `/models/${modelAt(0)}` };
    for (const [what, path] of Object.entries(pages)) {
      const [p99, made] = await besideReview({ port, cert, cookie: hard.cookie, path });
      add(row(`${name}, /healthz beside ${what}: p99`, [p99], "ms", { most: 100 }));
      if (made === 0) throw new Error(`${what}: no page was made meanwhile.`);
    }
    await load("1 MB study", () => `${list}/${large}`, {});
    child.send("memory");
    add(row(`${name}, ${count} studies: memory`, [(await next<number>(child)) / 1e6], "MB", { most: 300 }));
  } finally {
    child.kill();
  }
  return rows;
}

const commonest = 60;

/** Two of the commonest words: each pair once, then with a third. */
function commonWords(turn: number): string {
  const ranks = [turn, Math.floor(turn / commonest), Math.floor(turn / commonest ** 2)];
  const words = ranks.map((rank) => wordAt(rank % commonest));
  return words.slice(0, turn < commonest ** 2 ? 2 : 3).join("+");
}

function next<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    child.once("message", (message) => resolve(message as T));
    child.once("exit", (code) => reject(new Error(`The service ended with ${code}.`)));
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [count, kept, only] = process.argv.slice(2);
  if (kept !== undefined) mkdirSync(kept, { recursive: true });
  await benchCount(
    Number(count ?? 100_000),
    kept,
    ({ name, value, unit, goal, ok }) => {
      console.log(
        `${name}: ${value.toFixed(1)} ${unit}${goal === undefined ? "" : ` (goal ${goal}${ok ? "" : ", missed"})`}`,
      );
    },
    only,
  );
}
