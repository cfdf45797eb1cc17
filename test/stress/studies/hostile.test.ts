import { test } from "uvu";
import { startDatabases } from "../../studies/support/databases.js";
import { hostileRounds } from "../../studies/support/hostile.js";
import { seed } from "../../support/fc.js";

const databases = await startDatabases();

for (const database of databases.all) {
  // Each round saves one package and reads it back, so 10,000 come back byte for byte over both databases.
  test(`${database.name}: 20,000 generated requests, seed ${seed}`, async () => {
    await hostileRounds(database.fresh(), 5000, seed);
  });
}

test.after(() => databases.close());
test.run();
