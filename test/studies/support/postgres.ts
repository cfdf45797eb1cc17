import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Cluster {
  /** URL of a database; created on first use. */
  url(database: string): string;
  pid: number;
  /** Kills the server without warning and starts it again on the same data. */
  crash(): Promise<void>;
  stop(): Promise<void>;
}

export interface ClusterOptions {
  /** Whether commits wait for the disk; only tests that kill the server need it. */
  durable?: boolean;
  /** Folder of a cluster that stays after its server has stopped; made if it is not there. */
  kept?: string;
  /** Such as `log_error_verbosity=verbose`. */
  settings?: string[];
  /** Receives what the server logs. */
  log?: (text: string) => void;
}

/** Folder of PostgreSQL's programs, or null where it is not installed, or not wanted (TAPLINE_TEST_POSTGRESQL=0). */
export function findPostgres(): string | null {
  if (process.env.TAPLINE_TEST_POSTGRESQL === "0") return null;
  const debian = "/usr/lib/postgresql";
  const folders = existsSync(debian)
    ? readdirSync(debian)
        .sort((a, b) => Number(b) - Number(a))
        .map((version) => join(debian, version, "bin"))
    : [];
  const onPath = (process.env.PATH ?? "").split(":");
  return (
    [...folders, ...onPath].find((folder) => folder !== "" && existsSync(join(folder, "initdb"))) ?? null
  );
}

/**
 * Starts a temporary PostgreSQL on a socket in a temporary folder: no port, no outside account. Null where PostgreSQL
 * is not installed.
 */
export async function startPostgres({
  durable,
  kept,
  settings,
  log,
}: ClusterOptions = {}): Promise<Cluster | null> {
  const bin = findPostgres();
  if (bin === null) return null;
  const folder = kept ?? mkdtempSync(join(tmpdir(), "tapline-pg-"));
  mkdirSync(folder, { recursive: true });
  const user = ordinaryUser();
  if (user) chownSync(folder, user.uid, user.gid);
  const env = { ...process.env, LC_ALL: "C.UTF-8" };
  if (!existsSync(join(folder, "data"))) makeData(bin, join(folder, "data"), { ...user, env, cwd: folder });
  let server = await start();
  async function start(): Promise<ChildProcess> {
    const child = spawn(
      join(bin as string, "postgres"),
      [
        "-D",
        join(folder, "data"),
        "-k",
        folder,
        ...[
          "listen_addresses=",
          "max_connections=200",
          `fsync=${durable ? "on" : "off"}`,
          ...(settings ?? []),
        ].flatMap((setting) => ["-c", setting]),
      ],
      { ...user, env, cwd: folder, stdio: ["ignore", "ignore", log ? "pipe" : "ignore"] },
    );
    if (log) child.stderr?.setEncoding("utf8").on("data", log);
    for (let tries = 0; ; tries += 1) {
      try {
        execFileSync(join(bin as string, "pg_isready"), ["-h", folder, "-U", "tapline"], { stdio: "ignore" });
        return child;
      } catch (error) {
        if (tries > 3000 || child.exitCode !== null) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }
  const created = new Set<string>();
  const ended = () =>
    new Promise<void>((resolve) => {
      if (server.exitCode !== null || server.signalCode !== null) resolve();
      else server.once("exit", () => resolve());
    });
  return {
    url(database) {
      if (!created.has(database)) {
        const make = ["-h", folder, "-U", "tapline", database];
        const { status } = spawnSync(join(bin, "createdb"), make, { stdio: "ignore" });
        if (status !== 0 && kept === undefined) throw new Error(`createdb ended with ${status}.`);
        created.add(database);
      }
      return `postgresql://tapline@localhost/${database}?host=${encodeURIComponent(folder)}`;
    },
    get pid() {
      return server.pid as number;
    },
    async crash() {
      server.kill("SIGQUIT");
      await ended();
      server = await start();
    },
    async stop() {
      server.kill("SIGINT");
      await ended();
      if (kept === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The files of an empty cluster: a copy of the first that was made in this run, which takes a tenth of the time. */
function makeData(
  bin: string,
  data: string,
  as: { uid?: number; gid?: number; env: NodeJS.ProcessEnv; cwd: string },
): void {
  const options = { ...as, stdio: "ignore" } as const;
  const words = ["-U", "tapline", "-A", "trust", "-E", "UTF8", "--no-sync"];
  const shared = process.env.TAPLINE_TEST_SHARED;
  if (shared === undefined) {
    execFileSync(join(bin, "initdb"), ["-D", data, ...words], options);
    return;
  }
  const first = join(shared, "postgresql");
  if (!existsSync(first)) {
    const own = `${first}-${process.pid}`;
    mkdirSync(own);
    if (as.uid !== undefined && as.gid !== undefined) chownSync(own, as.uid, as.gid);
    execFileSync(join(bin, "initdb"), ["-D", own, ...words], options);
    try {
      renameSync(own, first);
    } catch (error) {
      if (!existsSync(first)) throw error; // else another file's was ready before
    }
  }
  execFileSync("cp", ["-a", first, data], options);
}

/** PostgreSQL refuses to run as root; Debian's package brings an account for it. */
function ordinaryUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const line = readFileSync("/etc/passwd", "utf8").match(/^postgres:[^:]*:(\d+):(\d+):/m);
  return { uid: Number(line?.[1] ?? 65534), gid: Number(line?.[2] ?? 65534) };
}
