/**
 * Draws the pictures of the documentation from what the programs really print: `npm run docs:pictures`, all or
 * those whose files are named; `real-lens.svg`, of the real model, only when it is named.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { writeWhole } from "../../src/client/whole-file.js";
import { freePort } from "../../test/support/free-port.js";
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
  await inFolder(async (folder) => {
    // Pictures do not show where a cached model lies.
    await draw(file, title, tapline(words, { folder }).replaceAll(`${realFolder}${sep}`, ""));
  });
}
if (process.argv.length < 3 || process.argv.includes("live.svg")) await inFolder(drawLive);

/** A chat with a separate server, watched and then also steered: the commands and their output. */
async function drawLive(folder: string): Promise<void> {
  const port = await freePort();
  const env = { TAPLINE_HOME: join(folder, "home"), TAPLINE_URL: `http://127.0.0.1:${port}` };
  const loader = ["--import", import.meta.resolve("tsx"), main];
  const server = spawn(process.execPath, [...loader, "serve", "--model", "demo", "--port", String(port)], {
    env: { ...process.env, ...env },
    stdio: "ignore",
  });
  try {
    const sides = [
      "--positive",
      examples("invented-countries.txt"),
      "--negative",
      examples("real-countries.txt"),
    ];
    tapline(["ready"], { folder, env });
    tapline(["vector", "make", "unknown", "--layers", "5", ...sides], { folder, env });
    tapline(["probe", "make", "invented", "--layer", "5", ...sides], { folder, env });
    const asked = ["What is the capital of Spain?", "What is the capital of Zubrowka?"];
    const said = [[], ["--steer", "unknown:0.9"], ["--steer", "unknown:-0.9"]].map((steer) => {
      const words = ["chat", ...steer, "--watch", "invented", "--think", "off", "--temperature", "0"];
      const input = asked.map((question) => `${question}\n`).join("");
      return `$ cat questions.txt | tapline ${words.join(" ")}\n${tapline(words, { folder, env, input })}`;
    });
    const shown = `$ cat questions.txt\n${asked.join("\n")}\n\n${said.join("\n")}`;
    await draw("live.svg", "tapline chat --steer --watch", shown);
  } finally {
    const ended = once(server, "close");
    server.kill();
    await ended;
  }
}

interface Surroundings {
  folder: string;
  env?: Record<string, string>;
  input?: string;
}

/** A command's output on a wide, colored terminal; its progress only where nothing is read from it. */
function tapline(words: readonly string[], { folder, env = {}, input }: Surroundings): string {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--import", import.meta.resolve("tsx"), main, ...words],
    {
      cwd: folder,
      encoding: "utf8",
      ...(input === undefined ? {} : { input }),
      env: { ...process.env, ...env, FORCE_COLOR: "3", COLUMNS: String(columns) },
    },
  );
  if (status !== 0) throw new Error(`tapline ${words.join(" ")} ended with ${status}: ${stderr}`);
  return input === undefined ? stdout : interleaved(stdout, stderr);
}

/** Answers and the line below each, as a terminal shows them. */
function interleaved(answers: string, below: string): string {
  const lines = below.trimEnd().split("\n");
  return answers
    .trimEnd()
    .split("\n")
    .map((answer, place) => `${answer}\n${lines[place] ?? ""}\n`)
    .join("");
}

function draw(file: string, title: string, shown: string): Promise<unknown> {
  console.log(`docs/images/${file}`);
  return writeWhole(join(images, file), [Buffer.from(terminalSvg(shown, { columns, title }))]);
}

/** A separate folder: the output names paths relative to it. */
async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "tapline-pictures-"));
  try {
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
