/** A draft of another token and an unknown id take the same time: medians within 3 % over 10,000 samples each. */
import { randomUUID } from "node:crypto";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { signInAccount } from "../../../src/studies/store/accounts.js";
import { saveDraft } from "../../../src/studies/store/drafts.js";
import { openStore } from "../../../src/studies/store/open.js";
import { readForToken } from "../../../src/studies/store/studies.js";
import { startDatabases } from "../../studies/support/databases.js";

const databases = await startDatabases();

for (const database of databases.all) {
  test(`${database.name}: hidden and unknown take the same time`, async () => {
    const store = await openStore(database.fresh());
    const identity = { issuer: "test", subject: "a", name: "Ada", email: null, login: null };
    const { id: accountId } = await signInAccount(store, identity);
    const bytes = Buffer.from(JSON.stringify({ finding: "x".repeat(900_000) }));
    const credential = { tokenId: randomUUID(), accountId, scopes: [] };
    const saved = (await saveDraft(store, credential, bytes, "t", null)) as { id: string };
    const stranger = randomUUID();
    const times: [hidden: number[], unknown: number[]] = [[], []];
    for (let sample = 0; sample < 20_500; sample += 1) {
      const kind = Math.random() < 0.5 ? 0 : 1;
      const id = kind === 0 ? saved.id : randomUUID();
      const start = process.hrtime.bigint();
      assert.is(await readForToken(store, id, stranger), undefined);
      if (sample >= 500) times[kind].push(Number(process.hrtime.bigint() - start));
    }
    const [hidden, unknown] = times.map(
      (all) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)] as number,
    ) as [number, number];
    console.log(
      `${database.name}: medians ${(hidden / 1000).toFixed(1)} and ${(unknown / 1000).toFixed(1)} microseconds`,
    );
    assert.ok(Math.abs(hidden / unknown - 1) <= 0.03, `medians ${hidden} and ${unknown} ns`);
    await store.close();
  });
}

test.after(() => databases.close());
test.run();
