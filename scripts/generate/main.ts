/** Writes the files generated from the contracts: `npm run generate`. */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { generated } from "./packages.js";

const root = new URL("../../", import.meta.url);
for (const [path, text] of Object.entries(generated())) {
  writeFileSync(fileURLToPath(new URL(path, root)), text);
}
