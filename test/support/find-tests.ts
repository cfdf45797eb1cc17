import { readdirSync } from "node:fs";
import { join, relative } from "node:path";

/** Folders that are long or need tools built first: run only when a pattern names them. */
const onRequest = ["stress", "verify"];

/**
 * All test files under `root` whose path holds one of the patterns, in a stable order.
 */
export function findTests(root: string, patterns: string[]): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => path.endsWith(".test.ts") && !path.includes("fixtures/"))
    .filter((path) => isWanted(path, patterns))
    .sort()
    .map((path) => join(root, path));
}

/** How many test files each folder of `root` has, sorted by name. */
export function testAreas(root: string): Map<string, number> {
  const counts = new Map<string, number>();
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).map((path) =>
    path.replaceAll("\\", "/"),
  );
  for (const path of files
    .filter((each) => each.endsWith(".test.ts") && !each.includes("fixtures/"))
    .sort()) {
    const area = path.split("/")[0] as string;
    counts.set(area, (counts.get(area) ?? 0) + 1);
  }
  return counts;
}

function isWanted(path: string, patterns: string[]): boolean {
  const folder = path.split("/")[0] ?? "";
  if (onRequest.includes(folder) && !patterns.some((pattern) => clean(pattern).startsWith(folder))) {
    return false;
  }
  return patterns.length === 0 || patterns.some((pattern) => path.includes(clean(pattern)));
}

/** Lets a path as the shell completes it, test/lab/, mean the same as lab. */
function clean(pattern: string): string {
  return relative(".", pattern)
    .replaceAll("\\", "/")
    .replace(/^test\//, "");
}
