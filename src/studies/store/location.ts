import { resolve } from "node:path";
import pg from "pg";
import { UserError } from "../../contracts/user-error.js";

/** A database's location, and its name in messages, which never includes the password. */
export type Location = { name: string } & (
  | { kind: "sqlite"; path: string }
  | { kind: "postgresql"; url: string }
);

const scheme = /^([a-z][a-z0-9+.-]*):\/\//i;

/**
 * Parses a `postgres://` URL or the path of an SQLite file. Other URLs are rejected, since they would create an empty
 * database file whose name may contain a password.
 * @param setting the setting's name in error messages
 */
export function parseLocation(given: string, setting = "The database"): Location {
  const text = given.trim();
  const found = scheme.exec(text)?.[1]?.toLowerCase();
  if (text === "") throw new UserError(`${setting} is empty.`);
  if (found === undefined) return { kind: "sqlite", path: text, name: `SQLite database ${resolve(text)}` };
  if (found !== "postgres" && found !== "postgresql") {
    throw new UserError(
      `${setting} must be a URL beginning with postgres:// or postgresql://, got ${found}://.`,
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
 * The PostgreSQL URL in DATABASE_URL; undefined if unset.
 * @throws UserError for other values, which would otherwise become the path of an SQLite file
 */
export function databaseUrl(env: Record<string, string | undefined>): string | undefined {
  const given = env.DATABASE_URL;
  if (given === undefined) return undefined;
  if (given.trim() === "") {
    throw new UserError("DATABASE_URL is empty; set it to a postgres:// URL, or unset it to use SQLite.");
  }
  if (!scheme.test(given.trim())) {
    throw new UserError(
      "DATABASE_URL must be a URL beginning with postgres:// or postgresql://; this value has no scheme.",
    );
  }
  const location = parseLocation(given, "DATABASE_URL");
  return location.kind === "postgresql" ? location.url : undefined;
}
