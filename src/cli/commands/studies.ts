import { join } from "node:path";
import type { Command } from "commander";
import { studiesPort } from "../../contracts/studies/limits.js";
import { UserError } from "../../contracts/user-error.js";
import { taplineHome } from "../../files/home.js";
import { integerBetween } from "../options.js";
import { stopSignal } from "../stop-signal.js";
import { type DatabaseOptions, registerModeration } from "./studies-moderation.js";

type Common = DatabaseOptions;

interface Options extends Common {
  dev?: boolean;
  seedData?: boolean;
  port?: number;
}

function dataFolder(options: Common): string {
  return options.data ?? join(taplineHome(), "studies");
}

/** `tapline studies`: the research service, on this machine with `--dev` or in production with a configuration. */
export function registerStudies(program: Command): void {
  const studies = program
    .command("studies")
    .description(
      "Run the studies service: published studies, private drafts, and the website for review and publishing.",
    )
    .option("--dev", "development mode: self-signed certificate, embedded database, test accounts")
    .option("--seed-data", "with --dev: fill an empty database with example studies")
    .option("--config <file>", "configuration file of a production service (JSON)")
    .option("--port <port>", "port to listen on", integerBetween(0, 65_535))
    .option("--data <folder>", "with --dev: database folder (default: ~/.tapline/studies)")
    .action(run);

  const withDatabase = (name: string, description: string) =>
    studies
      .command(name)
      .description(description)
      .option("--config <file>", "configuration file with the database")
      .option("--data <folder>", "folder of a development database")
      // The database options may also precede the subcommand, and must not be ignored there.
      .hook("preAction", (_, command) => {
        for (const option of ["config", "data"] as const) {
          const named = studies.getOptionValue(option);
          if (named !== undefined && command.getOptionValue(option) === undefined)
            command.setOptionValue(option, named);
        }
      });
  withDatabase("backup", "Back up everything except sessions to a file, while the service is running.")
    .argument("<file>")
    .action(async (file: string, options: Common) => {
      const { backUp } = await import("../../studies/backup.js");
      await withStore(options, async (store) => {
        const { studies, rows, unrecorded } = await backUp(store, file);
        console.log(`${store.name}: ${counted(studies)}, ${rows} rows written to ${file}.`);
        if (unrecorded !== null)
          console.error(`The backup is complete, but the audit log could not record it (${unrecorded}).`);
      });
    });
  withDatabase("restore", "Restore a backup into an empty database (SQLite or PostgreSQL).")
    .argument("<file>")
    .action(async (file: string, options: Common) => {
      const { checkExists, restore } = await import("../../studies/backup.js");
      checkExists(file);
      await withStore(
        options,
        async (store) => {
          const { studies, rows } = await restore(store, file);
          console.log(`${store.name}: ${counted(studies)}, ${rows} rows restored from ${file}.`);
        },
        true,
      );
    });
  registerModeration(withDatabase, withStore);
}

function counted(studies: number): string {
  return `${studies} ${studies === 1 ? "study" : "studies"}`;
}

async function run(options: Options): Promise<void> {
  if ((options.dev === true) === (options.config !== undefined)) {
    throw new UserError("Use either --dev (development mode) or --config <file> (a production service).");
  }
  const stopped = stopSignal();
  const close = options.dev ? await runDevelopment(options) : await runProduction(options);
  await stopped;
  await close();
}

async function runDevelopment(options: Options): Promise<() => Promise<void>> {
  const { startDevelopment } = await import("../../studies/dev/start.js");
  const running = await startDevelopment({
    folder: dataFolder(options),
    port: options.port ?? studiesPort,
    seedData: options.seedData === true,
    database: await developmentDatabase(options),
    env: process.env,
  });
  console.log(
    `Studies at ${running.origin}, with test accounts; API documentation at ${running.origin}/docs`,
  );
  console.log(`CA certificate for clients: ${running.certificateFile}`);
  return running.close;
}

async function runProduction(options: Options): Promise<() => Promise<void>> {
  const [{ readConfig }, { startStudies }] = await Promise.all([
    import("../../studies/config.js"),
    import("../../studies/start.js"),
  ]);
  const config = readConfig(options.config as string, process.env);
  const running = await startStudies({
    ...config,
    ...(options.port === undefined ? {} : { port: options.port }),
  });
  console.log(`Studies at ${running.origin}, listening on port ${running.port}`);
  return running.close;
}

/** Undefined with --data, whose folder contains the database; otherwise a PostgreSQL from DATABASE_URL, if set. */
async function developmentDatabase(options: Common): Promise<string | undefined> {
  if (options.data !== undefined) return undefined;
  const { databaseUrl } = await import("../../studies/store/location.js");
  return databaseUrl(process.env);
}

/** @param create whether to create a missing database; operators' commands do not, since they would report on an empty one */
async function withStore(
  options: Common,
  work: (store: import("../../studies/store/store.js").Store) => Promise<void>,
  create = false,
): Promise<void> {
  if (options.config !== undefined && options.data !== undefined)
    throw new UserError("--config and --data cannot be combined.");
  const { openStore } = await import("../../studies/store/open.js");
  const location =
    options.config === undefined
      ? ((await developmentDatabase(options)) ?? join(dataFolder(options), "studies.db"))
      : (await import("../../studies/config.js")).readConfig(options.config, process.env).database;
  const store = await openStore(location, { create });
  try {
    await work(store);
  } finally {
    await store.close();
  }
}
