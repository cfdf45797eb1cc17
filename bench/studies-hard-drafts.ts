/** Review pages that take long to make, and how soon other requests are answered meanwhile. */
import { randomUUID } from "node:crypto";
import { Agent, request } from "node:https";
import type { StudyPackage } from "../src/contracts/studies/index.js";
import { saveDraft } from "../src/studies/store/drafts.js";
import { startSession } from "../src/studies/store/sessions.js";
import type { Store } from "../src/studies/store/store.js";
import { samplePackage } from "../test/studies/support/packages.js";

const seconds = 4;

/** A megabyte each, of what a page finds hard. */
const texts: Record<string, (place: number) => string> = {
  "800 KB of soft hyphens": () => "\u00ad".repeat(44_000),
  "hidden characters in turn": () => "a\u200b".repeat(24_000),
  "1 MB of Markdown": (place) =>
    "# Title\n\n- *one* **two** `three` [four](https://example.org)\n\n```js\nlet x = 1;\n```\n\n"
      .repeat(1300)
      .slice(0, 98_000 - place),
  "quotes and line ends": () => '"\n'.repeat(24_000),
};

/** Saves the drafts. @returns the cookie of their owner, and the paths of their pages by what is in them */
export async function hardDrafts(store: Store): Promise<{ cookie: string; paths: Record<string, string> }> {
  const { id: accountId } = await store.db.selectFrom("accounts").select("id").executeTakeFirstOrThrow();
  const paths: Record<string, string> = {};
  for (const [what, text] of Object.entries(texts)) {
    const study: StudyPackage = samplePackage({
      entries: Array.from({ length: 9 }, (_, place) => ({
        id: randomUUID(),
        kind: "result" as const,
        title: "",
        answer: text(place),
      })),
    });
    const bytes = Buffer.from(JSON.stringify(study));
    await store.db.updateTable("accounts").set({ recent_drafts: "[]" }).where("id", "=", accountId).execute();
    const saved = await saveDraft(store, { tokenId: accountId, accountId, scopes: [] }, bytes, "hard", null);
    if (saved.outcome !== "saved") throw new Error(saved.outcome);
    paths[what] = `/drafts/${saved.id}`;
  }
  const cookie = `__Host-tapline-session=${await startSession(store, accountId, "bench")}`;
  return { cookie, paths };
}

interface Beside {
  port: number;
  cert: string;
  cookie: string;
  path: string;
}

/**
 * Asks for a page again and again, and for /healthz 100 times a second meanwhile.
 * @returns the 99th percentile of the latter in milliseconds, and how many pages were made
 */
export async function besideReview({
  port,
  cert,
  cookie,
  path,
}: Beside): Promise<[p99: number, pages: number]> {
  const agent = new Agent({ ca: cert, keepAlive: true });
  const get = (wanted: string) =>
    new Promise<void>((resolve, reject) => {
      const headers = { Host: `localhost:${port}`, Cookie: cookie };
      request({ host: "localhost", port, path: wanted, headers, agent }, (incoming) => {
        incoming.resume().on("error", reject);
        incoming.on("end", () =>
          incoming.statusCode === 200 ? resolve() : reject(new Error(`${wanted}: ${incoming.statusCode}`)),
        );
      })
        .on("error", reject)
        .end();
    });
  await get("/healthz");
  const until = performance.now() + seconds * 1000;
  const times: number[] = [];
  let pages = 0;
  const reviewing = (async () => {
    while (performance.now() < until) {
      await get(path);
      pages += 1;
    }
  })();
  while (performance.now() < until) {
    const begin = performance.now();
    await get("/healthz");
    times.push(performance.now() - begin);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await reviewing;
  agent.destroy();
  times.sort((a, b) => a - b);
  return [times[Math.ceil(times.length * 0.99) - 1] as number, pages];
}
