import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Cluster, startPostgres } from "./postgres.js";

export interface TestDatabase {
  name: "sqlite" | "postgresql";
  /** Location of a fresh, empty database. */
  fresh(): string;
}

export interface Databases {
  all: TestDatabase[];
  cluster: Cluster | null;
  close(): Promise<void>;
}

/** Both databases; PostgreSQL is left out, with a note, where it is not installed. */
export async function startDatabases(durable = false): Promise<Databases> {
  const folder = mkdtempSync(join(tmpdir(), "tapline-studies-"));
  const cluster = await startPostgres({ durable });
  if (cluster === null) console.log("SKIPPED on PostgreSQL: it is not installed (Debian: postgresql).");
  let count = 0;
  const all: TestDatabase[] = [
    {
      name: "sqlite",
      fresh() {
        count += 1;
        return join(folder, `${count}`, "studies.db");
      },
    },
  ];
  if (cluster !== null) {
    all.push({
      name: "postgresql",
      fresh() {
        count += 1;
        return cluster.url(`test${count}`);
      },
    });
  }
  return {
    all,
    cluster,
    async close() {
      await cluster?.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
