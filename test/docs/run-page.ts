/** Runs what a page of the documentation tells its reader to type, in order, as one person would. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { clientModule, module, program } from "../support/program.js";
import { pythonWith } from "../support/python.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The ports that pages name, as they would be with nobody else's services on this machine. */
const named = { lab: 8980, inference: 8971 } as const;

export interface PageRun {
  code: number | null;
  /** Everything that was shown; each block begins with a line of its own. */
  shown: string;
  blocks: number;
  /** Blocks that showed nothing, or an error beside an exit code of 0, as their first lines. */
  odd: string[];
}

/**
 * @param page path below the repository
 * @param folder an empty folder, which becomes the reader's working directory
 */
export async function runPage(page: string, folder: string): Promise<PageRun> {
  const bin = join(folder, "bin");
  const work = join(folder, "work");
  for (const made of [bin, work, join(folder, "tmp")]) mkdirSync(made);
  symlinkSync(join(root, "docs"), join(work, "docs"));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  const run = (words: readonly string[]) =>
    `#!/bin/sh\nexec ${[process.execPath, ...words].map(quoted).join(" ")} "$@"\n`;
  writeFileSync(join(bin, "tapline"), run(program));
  writeFileSync(join(bin, "run-module"), run(module));
  writeFileSync(join(bin, "npx"), '#!/bin/sh\nexec "$@"\n');
  // What `npm ci` and `npm test` do, whoever runs this has done or is doing.
  writeFileSync(join(bin, "npm"), '#!/bin/sh\necho "npm $*"\n');
  for (const name of ["tapline", "run-module", "npx", "npm"]) chmodSync(join(bin, name), 0o755);

  const ports = { lab: await freePort(), inference: await freePort() };
  const blocks = blocksOf(readFileSync(join(root, page), "utf8"));
  const script = `set -euo pipefail\n${blocks.map((block) => shell(block, ports)).join("\n")}`;
  const child = spawn("bash", ["-c", `${onExit}\n${script}`], {
    cwd: work,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      PATH: `${bin}${delimiter}${process.env.PATH}`,
      HOME: folder,
      TMPDIR: join(folder, "tmp"),
      TAPLINE_HOME: join(folder, "home"),
      TAPLINE_LAB_URL: undefined,
      TAPLINE_URL: undefined,
      NO_COLOR: "1",
      PYTHONPATH: [
        join(root, "clients/python/tapline/src"),
        join(root, "clients/python/agent_research/src"),
      ].join(delimiter),
    },
  });
  let shown = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (part) => {
      shown += part;
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  return { code, shown, blocks: blocks.length, odd: code === 0 ? oddBlocks(shown) : [] };
}

/** Stands behind the title of a block whose output goes to a file. */
const intoFile = " (into a file)";

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** curl ends with 0 whatever the service answers, and a pipe may swallow everything. */
function oddBlocks(shown: string): string[] {
  const parts = shown.split(/^== /m).slice(1);
  return parts.filter((part) => {
    const [title = "", ...said] = part.split("\n");
    if (title === "fails") return false;
    const text = said.join("\n").trim();
    return (text === "" && !title.endsWith(intoFile)) || /^\{"error"|^\w*Error: /m.test(text);
  });
}

/** Services that the page starts end with it. */
const onExit = `trap 'code=$?; kill $(jobs -p) 2> /dev/null || true; wait || true; exit $code' EXIT`;

type Language = "sh" | "sh fails" | "python" | "js";

interface Block {
  language: Language;
  text: string;
}

function blocksOf(page: string): Block[] {
  return [...page.matchAll(/```(sh fails|sh|python|js)\n([\s\S]*?)```/g)].map(([, language, text]) => ({
    language: language as Language,
    text: text as string,
  }));
}

function shell({ language, text }: Block, ports: Record<keyof typeof named, number>): string {
  let code = text;
  for (const [name, port] of Object.entries(named)) {
    code = code.replaceAll(`:${port}`, `:${ports[name as keyof typeof named]}`);
  }
  const lines = code.trim().split("\n");
  const title = `echo ${quoted(`== ${lines[0]}${/ > \S+$/.test(lines.at(-1) as string) ? intoFile : ""}`)}`;
  switch (language) {
    case "python": {
      const python = pythonWith("tomllib") ?? pythonWith("asyncio");
      return `echo '== python'\n${python} - <<'END_OF_PYTHON'\n${code}\nEND_OF_PYTHON`;
    }
    case "js": {
      const module = code.replace('"tapline/client"', JSON.stringify(clientModule));
      return `${title}\ncat > block.mjs <<'END_OF_MODULE'\n${module}\nEND_OF_MODULE\nrun-module block.mjs`;
    }
    case "sh":
      return `${title}\n${started(code, ports)}`;
    case "sh fails":
      return `echo '== fails'\nif { ${code.trim()}\n}; then echo 'it should have failed'; exit 99; fi`;
  }
}

/** A service takes a free port in place of the usual one; from then on, commands find it. */
function started(code: string, ports: Record<keyof typeof named, number>): string {
  const service =
    (word: string, port: number, variable: string) =>
    (_: string, npx = "", given = "") => {
      const options = given.replace(/ --port \d+/, "");
      return (
        `${npx}tapline ${word} --port ${port}${options} &\n` + `export ${variable}=http://127.0.0.1:${port}`
      );
    };
  return code
    .replace(/^(npx )?tapline lab\b(.*)&$/m, service("lab", ports.lab, "TAPLINE_LAB_URL"))
    .replace(/^(npx )?tapline serve\b(.*)&$/m, service("serve", ports.inference, "TAPLINE_URL"));
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
