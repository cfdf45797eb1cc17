import { resolve } from "node:path";
import pg from "pg";
import { UserError } from "../../contracts/user-error.js";

/** Where a database is, and how messages name it: never with its password. */
export type Location = { name: string } & (
  | { kind: "sqlite"; path: string }
  | { kind: "postgresql"; url: string }
);

const scheme = /^([a-z][a-z0-9+.-]*):\/\//i;

/**
 * Reads a location: a `postgres://` URL, or the path of an SQLite file. Anything else that looks like a URL is refused,
 * because a file with that name would be an empty database, and the name would show a password.
 * @param setting what the location was read from, as messages call it
 */
export function parseLocation(given: string, setting = "The database"): Location {
  const text = given.trim();
  const found = scheme.exec(text)?.[1]?.toLowerCase();
  if (text === "") throw new UserError(`${setting} is empty.`);
  if (found === undefined) return { kind: "sqlite", path: text, name: `SQLite database ${resolve(text)}` };
  if (found !== "postgres" && found !== "postgresql") {
    throw new UserError(
      `${setting} must be a URL that begins with postgres:// or postgresql://, not ${found}://.`,
    );
  }
  const url = found + text.slice(found.length);
  try {
    const { database, host, port } = new pg.Client({ connectionString: url });
    return { kind: "postgresql", url, name: `PostgreSQL database ${database} on ${host}, port ${port}` };
  } catch {
    throw new UserError(
      `${setting} is not a valid URL; percent-encode special characters in its user name and password.`,
    );
  }
}

/**
 * The PostgreSQL that an environment names; undefined where it names none.
 * @throws UserError where DATABASE_URL is set to anything else: it would otherwise become the path of an SQLite file
 */
export function databaseUrl(env: Record<string, string | undefined>): string | undefined {
  const given = env.DATABASE_URL;
  if (given === undefined) return undefined;
  if (given.trim() === "") {
    throw new UserError("DATABASE_URL is empty; set it to a postgres:// URL, or unset it to use SQLite.");
  }
  if (!scheme.test(given.trim())) {
    throw new UserError(
      "DATABASE_URL must be a URL that begins with postgres:// or postgresql://; this value has no scheme.",
    );
  }
  const location = parseLocation(given, "DATABASE_URL");
  return location.kind === "postgresql" ? location.url : undefined;
}
