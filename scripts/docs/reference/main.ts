/**
 * Writes docs/reference from what the code describes itself: `npm run docs:reference`. The HTTP pages come from the
 * OpenAPI documents, the Python pages from docstrings, the table of models from the last recorded check.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pythonWith } from "../../../test/support/python.js";
import { httpPages } from "./http.js";
import { modelsPage } from "./models.js";
import { pythonPages } from "./python.js";

export const root = fileURLToPath(new URL("../../..", import.meta.url));

/** Text of every page by its path in the repository, except the Python pages. */
export function referencePages(): Record<string, string> {
  return { ...httpPages(), "docs/reference/models.md": modelsPage(root) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const python = pythonWith();
  if (python === undefined) throw new Error("The Python pages need Python 3.10; TAPLINE_PYTHON names one.");
  for (const [path, text] of Object.entries({ ...referencePages(), ...pythonPages(root, python) })) {
    writeFileSync(join(root, path), text);
  }
}
