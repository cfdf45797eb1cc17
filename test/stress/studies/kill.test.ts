/**
 * kill -9 during writes: acknowledged writes are there afterwards, whole, and others are there wholly or not.
 * Alongside SQLite's writers a system's own sqlite3 reads all the time, where it is installed.
 */
import { sql } from "kysely";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { signInAccount } from "../../../src/studies/store/accounts.js";
import { openStore } from "../../../src/studies/store/open.js";
import { sha256Hex } from "../../../src/studies/store/tokens.js";
import { startDatabases } from "../../studies/support/databases.js";
import { readAllTheTime } from "../../studies/support/foreign-reader.js";
import { forkWriter } from "./support/fork-writer.js";

const kills = Number(process.env.TAPLINE_STRESS_KILLS ?? 100);
const databases = await startDatabases(true);

for (const database of databases.all) {
  test(`${database.name}: ${kills} kills lose nothing that was acknowledged`, async () => {
    const location = database.fresh();
    let store = await openStore(location);
    const identity = { issuer: "test", subject: "a", name: "Ada", email: null, login: null };
    const { id } = await signInAccount(store, identity);
    const other = await signInAccount(store, { ...identity, subject: "b", name: "Ben" });
    const done = {
      comment: new Set<string>(),
      voted: new Set<string>(),
      hidden: new Set<string>(),
      removed: new Set<string>(),
    };
    const kinds = Object.keys(done) as (keyof typeof done)[];
    const drafts = new Map<string, string>();
    const published = new Set<string>();
    const reader = database.name === "sqlite" ? await readAllTheTime(location) : null;
    for (let kill = 0; kill < kills; kill += 1) {
      // Two at once: a second process on the same database is safe.
      await Promise.all(
        [0, 1].map(
          () =>
            new Promise<void>((resolve, reject) => {
              const child = forkWriter(location, id, other.id);
              let saved = 0;
              let killing = false;
              child.on(
                "message",
                (
                  message: { ready?: true; draft?: string; sha256?: string; published?: string } & {
                    [kind in keyof typeof done]?: string;
                  },
                ) => {
                  for (const kind of kinds) if (message[kind]) done[kind].add(message[kind] as string);
                  if (message.draft) {
                    drafts.set(message.draft, message.sha256 as string);
                    saved += 1;
                  }
                  if (message.published) published.add(message.published);
                  // Some have saved nothing yet, some a few drafts; the third is published, commented, moderated.
                  if (killing || saved < kill % 5) return;
                  killing = true;
                  setTimeout(() => child.kill("SIGKILL"), Math.random() * 100);
                },
              );
              child.once("exit", (code, signal) =>
                signal === "SIGKILL"
                  ? resolve()
                  : reject(new Error(`The writer ended by itself with ${code}.`)),
              );
            }),
        ),
      );
      if (database.name === "postgresql" && kill % 10 === 9) await databases.cluster?.crash();
    }
    const reads = await reader?.stop();
    await store.close();
    store = await openStore(location);
    if (database.name === "sqlite") {
      const check = await sql<{ integrity_check: string }>`pragma integrity_check`.execute(store.db);
      assert.equal(check.rows, [{ integrity_check: "ok" }]);
    }
    assert.ok(
      drafts.size > kills && published.size > 0,
      `${drafts.size} drafts, ${published.size} published`,
    );
    for (const [draft, sha256] of drafts) {
      const kept =
        (await store.db.selectFrom("drafts").select("package").where("id", "=", draft).executeTakeFirst()) ??
        (await store.db
          .selectFrom("versions")
          .select("package")
          .where("study_id", "=", draft)
          .executeTakeFirst());
      assert.is(kept && sha256Hex(kept.package), sha256, draft);
    }
    for (const study of published) {
      assert.ok(await store.db.selectFrom("studies").select("id").where("id", "=", study).executeTakeFirst());
    }
    const rows = async (table: "comments" | "votes" | "studies" | "audit", column: string) => {
      const { rows: found } = await sql<Record<string, unknown>>`select * from ${sql.table(table)}`.execute(
        store.db,
      );
      return new Map(found.map((row) => [row[column] as string, row]));
    };
    const [comments, votes, studies] = [
      await rows("comments", "id"),
      await rows("votes", "study_id"),
      await rows("studies", "id"),
    ];
    for (const comment of done.comment) assert.ok(comments.has(comment), "comment");
    for (const comment of done.hidden) assert.is(comments.get(comment)?.hidden, "hidden");
    for (const study of done.voted) assert.ok(votes.has(study), "vote");
    for (const study of done.removed)
      assert.equal([studies.get(study)?.standing, studies.get(study)?.listed], ["removed", 0]);
    // Whatever was done is in the log, and nothing else.
    const { rows: log } = await sql<{ action: string; count: number }>`
      select action, count(*) as count from audit group by action`.execute(store.db);
    const logged = Object.fromEntries(log.map(({ action, count }) => [action, Number(count)]));
    assert.is(logged["comment.add"], comments.size);
    assert.is(logged["vote.give"], votes.size);
    assert.is(logged["study.publish"], studies.size);
    assert.is(
      logged["study.remove"] ?? 0,
      [...studies.values()].filter(({ standing }) => standing === "removed").length,
    );
    // Counters and search moved with the studies, or not at all.
    const { count } = await store.db
      .selectFrom("studies")
      .select((eb) => eb.fn.countAll<number>().as("count"))
      .where("listed", "=", 1)
      .executeTakeFirstOrThrow();
    const counter = await store.db
      .selectFrom("counters")
      .select("value")
      .where("name", "=", "studies")
      .executeTakeFirst();
    assert.is(counter?.value, Number(count));
    assert.is(
      (await store.dialect.search.having(store.db, "demo", false, "body")).times.length,
      Number(count),
    );
    const counts = kinds.map((kind) => `${done[kind].size} ${kind}`).join(", ");
    console.log(
      `${database.name}: ${drafts.size} drafts, ${published.size} published, ${counts} acknowledged, all there` +
        (reads === undefined ? "" : ` beside ${reads} foreign reads`),
    );
    await store.close();
  });
}

test.after(() => databases.close());
test.run();
