import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { quantsPage } from "./page.js";
import type { QuantsRun } from "./run.js";
import { quantsStudy } from "./study.js";
import { quantsMarkdown } from "./tables.js";

/** Writes the result as JSON, page, table and study package. @returns the paths, the page first */
export async function writeQuants(
  folder: string,
  { quants, jobs }: QuantsRun,
  license: string,
): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const files = {
    "quants.html": quantsPage(quants),
    "quants.md": quantsMarkdown(quants),
    "quants.json": `${JSON.stringify(quants, null, 2)}\n`,
    "study.json": quantsStudy(quants, jobs, license),
  };
  const paths: string[] = [];
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    await writeFile(path, content);
    paths.push(path);
  }
  return paths;
}
