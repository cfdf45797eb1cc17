/**
 * Draws the pictures of the documentation from what the programs really print: `npm run docs:pictures`, all or
 * those whose files are named; `real-lens.svg`, of the real model, only when it is named.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { writeWhole } from "../../src/client/whole-file.js";
import { realFolder } from "../../test/support/real/cache.js";
import { smolLm2Model } from "../../test/support/real/models.js";
import { terminalSvg } from "./terminal-svg.js";

const columns = 100;
const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const images = fileURLToPath(new URL("../../docs/images", import.meta.url));

const examples = (name: string) => fileURLToPath(new URL(`../../docs/examples/${name}`, import.meta.url));

/** The words of a command as README tells them, so that a picture shows what its reader will see. */
function readmeCommand(begins: string): string[] {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8").replaceAll("\\\n", " ");
  const line = readme.split("\n").find((text) => text.startsWith(begins));
  if (line === undefined) throw new Error(`README has no line that begins with ${begins}.`);
  const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(
    ([, quoted, plain]) => quoted ?? (plain as string),
  );
  return words.slice(words.indexOf("tapline") + 1);
}

const pictures = [
  { file: "demo.svg", title: "npx tapline demo", words: ["demo"] },
  {
    file: "inspect.svg",
    title: "tapline inspect",
    words: ["inspect", "The capital of France is", "--lab", "new", "--out", "france", "--quiet"],
  },
  {
    file: "compare.svg",
    title: "tapline compare",
    // README's own command: its picture stands below it.
    words: [...readmeCommand("npx tapline compare"), "--lab", "new", "--no-out", "--quiet"],
  },
  {
    file: "probe.svg",
    title: "tapline probe",
    words: [
      "probe",
      "--examples",
      examples("reviews.csv"),
      "--layers",
      "0-7",
      "--lab",
      "new",
      "--no-out",
      "--quiet",
    ],
  },
].filter(({ file }) => process.argv.length < 3 || process.argv.includes(file));

// The real model is fetched only where its picture is asked for.
if (process.argv.includes("real-lens.svg")) {
  const { q8_0 } = await smolLm2Model();
  pictures.push({
    file: "real-lens.svg",
    title: "tapline inspect --model SmolLM2-135M-Instruct.Q8_0.gguf",
    words: ["inspect", "The capital of France is", "--model", q8_0, "--lab", "new", "--no-out", "--quiet"],
  });
}

for (const { file, title, words } of pictures) {
  // A folder of its own: the output names paths from where it was started.
  const folder = mkdtempSync(join(tmpdir(), "tapline-pictures-"));
  try {
    const { status, stdout } = spawnSync(
      process.execPath,
      ["--import", import.meta.resolve("tsx"), main, ...words],
      {
        cwd: folder,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "inherit"],
        env: { ...process.env, FORCE_COLOR: "3", COLUMNS: String(columns) },
      },
    );
    if (status !== 0) throw new Error(`tapline ${words.join(" ")} ended with ${status}.`);
    // Where a cached model lies is nobody's business.
    const shown = stdout.replaceAll(`${realFolder}${sep}`, "");
    await writeWhole(join(images, file), [Buffer.from(terminalSvg(shown, { columns, title }))]);
    console.log(`docs/images/${file}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
