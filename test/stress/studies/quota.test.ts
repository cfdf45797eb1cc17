/**
 * Random schedules from eight processes: never more than 60 admitted in any 60 seconds, and waiting suffices. Seconds are
 * those of the database, whose clock goes ten times as fast here: the window is the same, and so is who asks whom for it.
 */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { signInAccount } from "../../../src/studies/store/accounts.js";
import { admit } from "../../../src/studies/store/admission.js";
import { openStore } from "../../../src/studies/store/open.js";
import { createToken, sha256Hex } from "../../../src/studies/store/tokens.js";
import { hurriedClock } from "../../studies/support/clock.js";
import { startDatabases } from "../../studies/support/databases.js";

const seconds = Number(process.env.TAPLINE_STRESS_SECONDS ?? 200);
const times = 10;
const databases = await startDatabases();
const requester = fileURLToPath(new URL("./support/requester.ts", import.meta.url));

for (const database of databases.all) {
  test(`${database.name}: eight processes share one quota exactly`, async () => {
    const location = database.fresh();
    const since = Date.now();
    const store = await openStore(location, { dialect: hurriedClock(location, since, times) });
    const identity = { issuer: "test", subject: "a", name: "Ada", email: null, login: null };
    const { id } = await signInAccount(store, identity);
    const made = await createToken(store, id, { name: "t", days: 1, scopes: ["public:read"] });
    const hash = sha256Hex(made!.token);
    const admitted: { sent: number; received: number }[] = [];
    let refused = 0;
    await Promise.all(
      Array.from(
        { length: 8 },
        () =>
          new Promise<void>((resolve, reject) => {
            const child = fork(requester, [location, hash, ...[seconds, since, times].map(String)], {
              execArgv: ["--import", "tsx"],
            });
            child.on("message", (answers: { outcome: string; sent: number; received: number }[]) => {
              for (const answer of answers) {
                if (answer.outcome === "admitted") admitted.push(answer);
                else refused += 1;
              }
            });
            child.once("exit", (code) =>
              code === 0 ? resolve() : reject(new Error(`A requester ended with ${code}.`)),
            );
          }),
      ),
    );
    // Each was admitted between sending and receiving: 61 whose whole span is below 60 s would break the rule.
    const bySent = admitted.sort((a, b) => a.sent - b.sent);
    for (let first = 0; first + 60 < bySent.length; first += 1) {
      const span = bySent.slice(first, first + 61);
      const last = Math.max(...span.map(({ received }) => received));
      assert.ok(
        (last - (bySent[first]?.sent as number)) * times >= 60_000,
        `61 requests within ${(last - (bySent[first]?.sent as number)) * times} ms`,
      );
    }
    assert.ok(refused > 0 && admitted.length > 60, `${admitted.length} admitted, ${refused} refused`);
    let answer = await admit(store, hash);
    while (answer.outcome === "admitted") answer = await admit(store, hash);
    const wait = (answer as { window: { resetSeconds: number } }).window.resetSeconds;
    // Timers end up to a millisecond early.
    await new Promise((resolve) => setTimeout(resolve, (wait * 1000) / times + 1));
    assert.is((await admit(store, hash)).outcome, "admitted", "waiting as told suffices");
    console.log(`${database.name}: ${admitted.length} admitted, ${refused} refused in ${seconds} s`);
    await store.close();
  });
}

test.after(() => databases.close());
test.run();
