import { test } from "uvu";
import { seed } from "../support/fc.js";
import { startDatabases } from "./support/databases.js";
import { hostileRounds, mutations } from "./support/hostile.js";

const databases = await startDatabases();

for (const database of databases.all) {
  test(`${database.name}: generated requests, seed ${seed}`, async () => {
    await hostileRounds(database.fresh(), Math.max(250, mutations.length), seed);
  });
}

test.after(() => databases.close());
test.run();
