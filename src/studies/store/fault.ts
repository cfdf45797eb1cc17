/** SQLite result codes caused by the file or its disk, not by a statement. */
const sqliteOfFile = new Set([5, 6, 8, 10, 11, 13, 14, 23, 26]);

/** SQLSTATEs that an operator can act on, https://www.postgresql.org/docs/current/errcodes-appendix.html */
const postgresqlNames: Record<string, string> = {
  "25006": "the server is read-only",
  "28000": "the server rejects this user",
  "28P01": "wrong password",
  "3D000": "no such database",
  "42501": "missing permission",
  "53100": "disk full",
  "53200": "out of memory",
  "53300": "too many connections",
  "57P01": "the server is shutting down",
  "57P03": "the server is starting up",
};
const ofServer = /^(?:08|28|3D|53|57|58)|^(?:25006|42501)$/;

/** A failure's error code, without its message, which may quote parameters. */
export interface Fault {
  /** Such as `SQLite 13, database or disk is full`, `PostgreSQL 53100, disk full`, `ECONNREFUSED`. */
  text: string;
  /** Whether the database or its machine is at fault, and not a statement. */
  ofDatabase: boolean;
}

/** The error code that a database or the system reported; null if there is none. */
export function faultOf(error: unknown): Fault | null {
  const { code, errcode, errstr, syscall, message } = (error ?? {}) as Record<string, unknown>;
  // SQLite's texts are constants, one per code.
  if (typeof errcode === "number" && typeof errstr === "string")
    return { text: `SQLite ${errcode}, ${errstr}`, ofDatabase: sqliteOfFile.has(errcode & 0xff) };
  if (
    typeof code === "string" &&
    /^[0-9A-Z]{5}$/.test(code) &&
    syscall === undefined &&
    !code.startsWith("E")
  ) {
    const name = postgresqlNames[code];
    return { text: `PostgreSQL ${code}${name ? `, ${name}` : ""}`, ofDatabase: ofServer.test(code) };
  }
  if (typeof code === "string" && /^E[A-Z]+$/.test(code)) return { text: code, ofDatabase: true };
  // The driver's own messages, which have no code.
  if (
    message === "timeout exceeded when trying to connect" ||
    message === "Connection terminated unexpectedly"
  )
    return { text: message, ofDatabase: true };
  return null;
}
