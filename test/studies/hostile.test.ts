import { test } from "uvu";
import { startDatabases } from "./support/databases.js";
import { hostileRounds, mutations } from "./support/hostile.js";

const databases = await startDatabases();
const seed = Number(process.env.TAPLINE_TEST_SEED ?? Date.now() % 1_000_000);

for (const database of databases.all) {
  test(`${database.name}: generated requests, seed ${seed}`, async () => {
    await hostileRounds(database.fresh(), Math.max(250, mutations.length), seed);
  });
}

test.after(() => databases.close());
test.run();
