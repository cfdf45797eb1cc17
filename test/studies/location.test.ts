/** Where a database is: valid locations, and checks of what is already there. */
import { existsSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { databaseUrl, parseLocation } from "../../src/studies/store/location.js";
import { openStore } from "../../src/studies/store/open.js";
import { saying } from "../support/saying.js";
import { startDatabases } from "./support/databases.js";

const databases = await startDatabases();
test.after(() => databases.close());

for (const database of databases.all) {
  test(`${database.name}: without create, only a database with the schema opens`, async () => {
    const location = database.fresh();
    const error = await openStore(location, { create: false }).catch((thrown) => thrown);
    assert.is(error.name, "UserError", error.stack);
    assert.match(error.message, /^The (SQLite|PostgreSQL) database /);
    if (database.name === "sqlite") assert.not.ok(existsSync(location));
    await (await openStore(location)).close();
    const store = await openStore(location, { create: false });
    await store.close();
  });
}

test("locations are paths or postgres URLs, and their labels omit the password", () => {
  assert.equal(parseLocation("/data/s.db"), {
    ...{ kind: "sqlite", path: "/data/s.db", name: "SQLite database /data/s.db" },
  });
  assert.equal(parseLocation(" PostgreSQL://u:secret@Db:5433/s?x=Y "), {
    kind: "postgresql",
    url: "postgresql://u:secret@Db:5433/s?x=Y",
    name: "PostgreSQL database s on Db, port 5433",
  });
  assert.throws(() => parseLocation(""), saying("The database is empty."));
  assert.throws(
    () => parseLocation("mysql://u:secret@db/s"),
    saying("The database must be a URL beginning with postgres:// or postgresql://, got mysql://."),
  );
  assert.is(databaseUrl({}), undefined);
  assert.is(databaseUrl({ DATABASE_URL: "postgres://db/s" }), "postgres://db/s");
});

test.run();
