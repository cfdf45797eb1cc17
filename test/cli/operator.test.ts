/** What an operator's commands do to the database that is named, and what they print; another one is never touched. */
import { randomUUID } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Account, signInAccount } from "../../src/studies/store/accounts.js";
import { approve } from "../../src/studies/store/approvals.js";
import { addComment, findComment } from "../../src/studies/store/discussion.js";
import { saveDraft } from "../../src/studies/store/drafts.js";
import { openStore } from "../../src/studies/store/open.js";
import { publishDraft } from "../../src/studies/store/publish.js";
import { report } from "../../src/studies/store/reports.js";
import type { Store } from "../../src/studies/store/store.js";
import { listStudies } from "../../src/studies/store/studies.js";
import { createToken, sha256Hex } from "../../src/studies/store/tokens.js";
import { samplePackage } from "../studies/support/packages.js";
import { command } from "./in-process.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-operator-"));
const [data, home] = [join(folder, "data"), join(folder, "home")];
const before = { home: process.env.TAPLINE_HOME, database: process.env.DATABASE_URL };
process.env.TAPLINE_HOME = home;
delete process.env.DATABASE_URL;

let ada: Account;
let ben: Account;
let study: string;
let comment: string;

/** Looks into the database between two commands. */
async function looking<T>(look: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(join(data, "studies.db"));
  try {
    return await look(store);
  } finally {
    await store.close();
  }
}

test.before(async () => {
  await looking(async (store) => {
    const signIn = (name: string) =>
      signInAccount(store, {
        ...{ issuer: "test", subject: name, name, login: null },
        email: `${name.toLowerCase()}@example.org`,
      });
    [ada, ben] = [await signIn("Ada"), await signIn("Ben")];
    for (const role of ["agent", "publisher"] as const) await approve(store, role, "ada@example.org");
    const token = await createToken(store, ada.id, { name: "t", days: 1, scopes: ["drafts:write"] });
    const bytes = Buffer.from(JSON.stringify(samplePackage()));
    const credential = { accountId: ada.id, tokenId: token!.id, scopes: ["drafts:write" as const] };
    const saved = await saveDraft(store, credential, bytes, "A title", null);
    if (saved.outcome !== "saved") throw new Error(saved.outcome);
    study = saved.id;
    const reviewedSha256 = sha256Hex(bytes);
    await publishDraft(store, { accountId: ada.id, draftId: study, reviewedSha256, replaces: null });
    const added = await addComment(store, { accountId: ben.id, name: "Ben" }, study, null, "A comment.");
    comment = (added as { id: string }).id;
  });
});
test.after(() => {
  for (const [name, value] of [
    ["TAPLINE_HOME", before.home],
    ["DATABASE_URL", before.database],
  ] as const) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  rmSync(folder, { recursive: true, force: true });
});

async function said(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await command(["studies", ...words, "--data", data]);
  assert.equal([code, stderr], [0, ""], words.join(" "));
  return stdout;
}

async function refused(...words: string[]): Promise<[code: number, sentence: string]> {
  const { code, stdout, stderr } = await command(["studies", ...words, "--data", data]);
  assert.is(stdout, "");
  return [code, stderr.replace(/^tapline: |\n$|\n\(add[\s\S]*/g, "")];
}

const listed = () => looking(async (store) => (await listStudies(store, "", 50, 0)).total);
const shown = () => looking(async (store) => findComment(store, comment));

test("the database is the one that is named, before the command or behind it", async () => {
  const other = join(folder, "other");
  await (await openStore(join(other, "studies.db"))).close();
  const named = await command(["studies", "--data", other, "approve", "agent", "github:x"]);
  assert.equal([named.code, named.stdout], [0, "github:x is approved as agent.\n"]);
  const approvals = (place: string) => readFileSync(join(place, "studies.db")).includes("github:x");
  assert.equal([approvals(other), approvals(data)], [true, false]);
  // A configuration that is no good is read, and not passed over.
  const config = join(folder, "studies.json");
  writeFileSync(config, "{");
  for (const words of [
    ["--config", config, "audit"],
    ["audit", "--config", config],
  ]) {
    assert.is((await command(["studies", ...words])).code, 1);
  }
  assert.not(existsSync(home), "nothing was made where nobody pointed");
  const usual = join(home, "studies", "studies.db");
  await (await openStore(usual)).close();
  assert.equal((await command(["studies", "audit"])).code, 0, "without a word it is the usual one");
  rmSync(home, { recursive: true, force: true });
});

/** Every command that works on a database, except `restore`, with arguments that it takes. */
const onDatabase = [
  ["backup", join(folder, "daily.gz")],
  ["approve", "agent", "github:x"],
  ["disapprove", "agent", "github:x"],
  ["remove", "x", "--reason", "r"],
  ["reinstate", "x"],
  ["hide", "x", "--reason", "r"],
  ["show", "x"],
  ["erase", "x", "--reason", "r"],
  ["suspend", "@x", "--reason", "r"],
  ["unsuspend", "@x"],
  ["export-account", "@x", join(folder, "x.tar")],
  ["delete-account", "@x"],
  ["reports"],
  ["dismiss", "x"],
  ["audit"],
];

test("commands refuse a missing or foreign database and create nothing", async () => {
  const { Command } = await import("commander");
  const { registerStudies } = await import("../../src/cli/commands/studies.js");
  const program = new Command();
  registerStudies(program);
  const names = program.commands[0]?.commands.map((one) => one.name()) ?? [];
  assert.equal(
    names.filter((name) => name !== "restore").sort(),
    onDatabase.map(([name]) => name as string).sort(),
  );
  const backup = join(folder, "daily.gz");
  writeFileSync(backup, "the last good one");
  const [missing, foreign] = [join(folder, "missing"), join(folder, "foreign")];
  mkdirSync(foreign);
  const contents = { empty: "", sqlite: "" };
  const { SqliteFile } = await import("../../src/studies/store/sqlite-file.js");
  const made = new SqliteFile(join(foreign, "made.db"), 0);
  made.exec("create table another (x)");
  made.close();
  contents.sqlite = readFileSync(join(foreign, "made.db"), "latin1");
  for (const words of onDatabase) {
    const { code, stdout, stderr } = await command(["studies", ...words, "--data", missing]);
    assert.equal([code, stdout], [1, ""], words.join(" "));
    assert.match(stderr, `The SQLite database ${missing}/studies.db`);
    assert.not(existsSync(missing), words.join(" "));
    for (const content of Object.values(contents)) {
      writeFileSync(join(foreign, "studies.db"), content, "latin1");
      const { code, stderr } = await command(["studies", ...words, "--data", foreign]);
      assert.is(code, 1, words.join(" "));
      assert.match(stderr, "The SQLite database ");
      assert.is(readFileSync(join(foreign, "studies.db"), "latin1"), content, "it is as it was");
    }
  }
  assert.is(readFileSync(backup, "utf8"), "the last good one");
  // A configuration whose database was never made is as missing as a folder.
  const config = join(folder, "new.json");
  writeFileSync(config, JSON.stringify({ origin: "https://s.example", trusted_proxies: ["::1"] }));
  const { code, stderr } = await command(["studies", "backup", backup, "--config", config]);
  assert.is(code, 1);
  assert.match(stderr, `SQLite database ${join(folder, "studies.db")}`);
  assert.match(
    (await command(["studies", "audit", "--config", config, "--data", data])).stderr,
    "--config and --data cannot be combined.",
  );
});

test("an empty database does not replace a backup", async () => {
  const [empty, backup] = [join(folder, "empty"), join(folder, "kept.gz")];
  await (await openStore(join(empty, "studies.db"))).close();
  writeFileSync(backup, "the last good one");
  const { code, stderr } = await command(["studies", "backup", backup, "--data", empty]);
  assert.is(code, 1);
  assert.match(stderr, `has no accounts, so ${backup} was not replaced.`);
  assert.is(readFileSync(backup, "utf8"), "the last good one");
});

test("restore of a missing backup creates no database", async () => {
  const place = join(folder, "never");
  const { code, stderr } = await command(["studies", "restore", join(folder, "no.gz"), "--data", place]);
  assert.is(code, 1);
  assert.match(stderr, `${join(folder, "no.gz")} does not exist.`);
  assert.not(existsSync(place));
});

test("an invalid DATABASE_URL is refused without printing its password", async () => {
  const config = join(folder, "url.json");
  writeFileSync(config, JSON.stringify({ origin: "https://s.example", trusted_proxies: ["::1"] }));
  const here = process.cwd();
  process.chdir(folder);
  const list = () => readdirSync(folder, { recursive: true }).sort();
  const files = list();
  try {
    for (const [url, sentence] of [
      ["postgresql+psycopg://u:hunter2@db/s", "got postgresql+psycopg://."],
      ["mysql://u:hunter2@db/s", "got mysql://."],
      ["u:hunter2@db/s", "this value has no scheme."],
      ["", "DATABASE_URL is empty;"],
      ["  ", "DATABASE_URL is empty;"],
      ["postgres://u:hunter2@[/s", "DATABASE_URL is not a valid URL;"],
    ] as const) {
      process.env.DATABASE_URL = url;
      for (const words of [["audit"], ["audit", "--config", config], ["--config", config], ["--dev"]]) {
        const { code, stdout, stderr } = await command(["studies", ...words]);
        assert.equal([code, stdout], [1, ""], `${url} ${words}`);
        assert.match(stderr, sentence);
        assert.not.match(stderr, "hunter2");
      }
    }
    // Upper case and blanks around it are the same URL.
    process.env.DATABASE_URL = " POSTGRES://u:hunter2@127.0.0.1:1/s\n";
    const { code, stderr } = await command(["studies", "audit"]);
    assert.is(code, 1);
    assert.match(stderr, "Cannot open the PostgreSQL database s on 127.0.0.1, port 1: ECONNREFUSED.");
    assert.not.match(stderr, "hunter2");
    // A folder that is named is meant, whatever the environment says.
    assert.is((await command(["studies", "audit", "--data", data])).code, 0);
  } finally {
    process.chdir(here);
    delete process.env.DATABASE_URL;
  }
  writeFileSync(
    config,
    JSON.stringify({
      origin: "https://s.example",
      trusted_proxies: ["::1"],
      database: "postgres://u:hunter2@db/s",
    }),
  );
  const { stderr } = await command(["studies", "audit", "--config", config]);
  assert.match(stderr, "database must be the path of an SQLite file, not a URL;");
  assert.not.match(stderr, "hunter2");
  assert.equal(list(), files, "no file was created");
});

test("approvals are given and taken back", async () => {
  assert.is(
    await said("approve", "moderator", "ben@example.org"),
    "ben@example.org is approved as moderator.\n",
  );
  assert.is(
    await said("disapprove", "moderator", "ben@example.org"),
    "ben@example.org is no longer approved as moderator.\n",
  );
  assert.equal(await refused("disapprove", "moderator", "ben@example.org"), [
    ...[1, "ben@example.org was not approved as moderator."],
  ] as [number, string]);
  const [code, sentence] = await refused("approve", "reader", "ben@example.org");
  assert.is(code, 2);
  assert.match(sentence, "It must be one of agent, publisher, moderator.");
});

test("a study is removed and published again, a version of it alone, each once", async () => {
  const id = study.toUpperCase();
  assert.is(await listed(), 1);
  assert.is(await said("remove", id, "--reason", "Copied."), `${id} is removed.\n`);
  assert.is(await listed(), 0);
  const already = "is already in that state, or has no such version.";
  assert.equal(await refused("remove", study, "--reason", "x"), [1, `The study ${study} ${already}`]);
  assert.is(await said("reinstate", id), `${id} is published again.\n`);
  assert.is(await listed(), 1);
  assert.equal(await refused("reinstate", study), [1, `The study ${study} ${already}`]);
  const one = ["--version-number", "1"];
  assert.is(await said("remove", study, "--reason", "x", ...one), `${study} is removed.\n`);
  assert.is(await said("reinstate", study, ...one), `${study} is published again.\n`);
  assert.equal(await refused("remove", study, "--reason", "x", "--version-number", "2"), [
    ...[1, `The study ${study} ${already}`],
  ] as [number, string]);
  const nobody = randomUUID();
  assert.equal(await refused("remove", nobody, "--reason", "x"), [1, `There is no study ${nobody}.`]);
});

test("a reason has 1 to 1000 characters and is not blank", async () => {
  for (const [reason, count] of [
    ["", 0],
    ["  ", 2],
    ["é".repeat(1001), 1001],
  ] as const) {
    const [code, sentence] = await refused("remove", study, "--reason", reason);
    assert.is(code, 2);
    assert.match(sentence, `It must have 1 to 1000 characters, got ${count}.`);
  }
  assert.match((await refused("remove", study))[1], "Required option '--reason <text>' not specified");
  await said("hide", comment, "--reason", "😀".repeat(1000));
  await said("show", comment);
});

test("a comment is hidden, shown and erased", async () => {
  const id = comment.toUpperCase();
  const gone = (what: string) => `There is no comment ${what}, or it is already in that state.`;
  assert.is(await said("hide", id, "--reason", "Rude."), `${id} is hidden.\n`);
  assert.equal([(await shown())?.hidden, (await shown())?.reason], ["hidden", "Rude."]);
  assert.equal(await refused("hide", comment, "--reason", "Rude."), [1, gone(comment)]);
  assert.is(await said("show", id), `${id} is shown again.\n`);
  assert.equal([(await shown())?.hidden, (await shown())?.body], [null, "A comment."]);
  assert.equal(await refused("show", comment), [1, gone(comment)]);
  assert.is(await said("erase", id, "--reason", "Names somebody."), `${id} is erased.\n`);
  assert.is((await shown())?.body, "");
  assert.equal(await refused("erase", comment, "--reason", "x"), [1, gone(comment)]);
});

test("an account is suspended and let in again", async () => {
  assert.is(await said("suspend", "ben@example.org", "--reason", "x"), "ben@example.org is suspended.\n");
  const already = "The account ben@example.org is already in that state, or has no such version.";
  assert.equal(await refused("suspend", "ben@example.org", "--reason", "x"), [1, already]);
  assert.is(await said("unsuspend", "ben@example.org"), "ben@example.org is no longer suspended.\n");
  assert.equal(await refused("unsuspend", "ben@example.org"), [1, already]);
  assert.is((await refused("suspend", "nobody@example.org", "--reason", "x"))[0], 1);
});

test("reports wait until somebody closes them, told in a line each, the oldest first", async () => {
  const [about, ...handles] = await looking(async (store) => {
    const added = await addComment(store, { accountId: ben.id, name: "Ben" }, study, null, "Another.");
    const { id } = added as { id: string };
    await report(store, ben.id, { studyId: study, commentId: null }, "Copied.\n\u202eReally.");
    await new Promise((resolve) => setTimeout(resolve, 2)); // a later millisecond
    await report(store, ada.id, { studyId: study, commentId: id }, "Rude.");
    const rows = await store.db.selectFrom("accounts").select(["id", "handle"]).execute();
    return [id, ...[ada, ben].map((one) => rows.find((row) => row.id === one.id)!.handle)];
  });
  const [ofAda, ofBen] = handles;
  const lines = (await said("reports")).trimEnd().split("\n");
  const parts = lines.map((line) => line.split("  "));
  assert.equal(
    parts.map(([, , what, who, why]) => [what, who, why]),
    [
      [`study ${study}`, `@${ofBen}`, "Copied. Really."],
      [`comment ${about} on ${study}`, `@${ofAda}`, "Rude."],
    ],
  );
  for (const [time] of parts) assert.match(time!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const [first, second] = parts.map(([, id]) => id!.replace("report ", ""));
  assert.is(await said("dismiss", first!.toUpperCase()), `Report ${first!.toUpperCase()} is closed.\n`);
  assert.is((await said("reports")).split("\n").length, 2);
  await said("dismiss", second!);
  assert.is(await said("reports"), "Nothing to review.\n");
  assert.equal(await refused("dismiss", first!), [
    ...[1, `There is no open report ${first}, or it is already in that state.`],
  ] as [number, string]);
});

test("the audit log: the newest first, of one target, as many as are wanted", async () => {
  const all = (await said("audit")).trimEnd().split("\n");
  assert.match(all[0]!, /Z {2}operator {2}report\.dismiss {2}[0-9a-f-]{36}$/);
  assert.ok(all.some((line) => /Z {2}@\S+ {2}study\.publish {2}/.test(line)));
  assert.equal((await said("audit", "--limit", "2")).trimEnd().split("\n"), all.slice(0, 2));
  const ofComment = (await said("audit", "--target", comment)).trimEnd().split("\n");
  assert.equal(
    ofComment.map((line) => line.split("  ")[2]),
    ["comment.erase", "comment.show", "comment.hide", "comment.show", "comment.hide", "comment.add"],
  );
  assert.match(ofComment[0]!, /Names somebody\.$/);
  assert.match((await refused("audit", "--limit", "10001"))[1], "a whole number between 1 and 10000");
});

test("an account's own words are exported; it is deleted only with --yes", async () => {
  const file = join(folder, "ben.tar");
  assert.is(await said("export-account", "ben@example.org", file), `Exported ben@example.org to ${file}.\n`);
  assert.ok(readFileSync(file).includes("ustar"));
  assert.match(await said("audit", "--limit", "1"), `operator  account.export  ${ben.id}`);
  const counts = "studies 1, comments 0, votes 0.";
  const words = ["delete-account", "ada@example.org"];
  assert.is(
    await said(...words),
    "Would delete: name, address and handle of ada@example.org, drafts 0, tokens 1.\n" +
      `Would keep under "deleted account": ${counts}\nNothing was deleted. Use --yes to delete.\n`,
  );
  assert.is(
    await said(...words, "--yes"),
    `Deleted: name, address and handle of ada@example.org, drafts 0, tokens 1.\nKept under "deleted account": ${counts}\n`,
  );
  assert.is((await refused(...words))[0], 1, "it is no longer there");
});

test("a backup is restored into an empty database and its rows are counted", async () => {
  const [file, copy] = [join(folder, "backup.jsonl"), join(folder, "copy")];
  const written = await said("backup", file);
  const [, rows] = /: 1 study, (\d+) rows written to /.exec(written) ?? [];
  assert.is(written, `SQLite database ${data}/studies.db: 1 study, ${rows} rows written to ${file}.\n`);
  const restored = await command(["studies", "restore", file, "--data", copy]);
  assert.equal(
    [restored.code, restored.stdout],
    [0, `SQLite database ${copy}/studies.db: 1 study, ${rows} rows restored from ${file}.\n`],
  );
  assert.is(
    (await command(["studies", "restore", file, "--data", copy])).code,
    1,
    "it is not empty any more",
  );
});

test("a service is started in one of two ways", async () => {
  for (const words of [[], ["--dev", "--config", "x"]]) {
    const { code, stderr } = await command(["studies", ...words]);
    assert.is(code, 1);
    assert.match(stderr, "Use either --dev (development mode) or --config <file> (a production service).");
  }
});

test.run();
