/** Runs what a page of the documentation tells its reader to type, in order, as one person would. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { pythonWith } from "../support/python.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const main = join(root, "src/cli/main.ts");

/** The ports that pages name, as they would be with nobody else's services on this machine. */
const named = { lab: 8980, inference: 8971 } as const;

export interface PageRun {
  code: number | null;
  /** Everything that was shown; each block begins with a line of its own. */
  shown: string;
  blocks: number;
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
  const tsx = import.meta.resolve("tsx");
  writeFileSync(
    join(bin, "tapline"),
    `#!/bin/sh\nexec '${process.execPath}' --import '${tsx}' '${main}' "$@"\n`,
  );
  writeFileSync(join(bin, "npx"), '#!/bin/sh\nexec "$@"\n');
  for (const name of ["tapline", "npx"]) chmodSync(join(bin, name), 0o755);

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
  return { code, shown, blocks: blocks.length };
}

/** Services that the page starts end with it. */
const onExit = `trap 'code=$?; kill $(jobs -p) 2> /dev/null || true; wait || true; exit $code' EXIT`;

interface Block {
  language: "sh" | "sh fails" | "python";
  text: string;
}

function blocksOf(page: string): Block[] {
  return [...page.matchAll(/```(sh fails|sh|python)\n([\s\S]*?)```/g)].map(([, language, text]) => ({
    language: language as Block["language"],
    text: text as string,
  }));
}

function shell({ language, text }: Block, ports: Record<keyof typeof named, number>): string {
  let code = text;
  for (const [name, port] of Object.entries(named)) {
    code = code.replaceAll(`:${port}`, `:${ports[name as keyof typeof named]}`);
  }
  if (language === "python") {
    const python = pythonWith("tomllib") ?? pythonWith("asyncio");
    return `echo '== python'\n${python} - <<'END_OF_PYTHON'\n${code}\nEND_OF_PYTHON`;
  }
  // A reader waits until a service says that it is ready; from then on, commands find it.
  code = code.replace(/^tapline lab\b(.*)&$/m, (_, options) => {
    const url = `http://127.0.0.1:${ports.lab}`;
    return `tapline lab --port ${ports.lab}${options} &\n${waitFor(`${url}/lab/v1/health`)}\nexport TAPLINE_LAB_URL=${url}`;
  });
  code = code.replace(/^tapline serve\b(.*)&$/m, (_, options) => {
    const url = `http://127.0.0.1:${ports.inference}`;
    return `tapline serve --port ${ports.inference}${options} &\n${waitFor(`${url}/health`)}\nexport TAPLINE_URL=${url}`;
  });
  const shownAs = JSON.stringify(code.split("\n")[0]);
  if (language === "sh") return `echo ${JSON.stringify(`== ${shownAs}`)}\n${code}`;
  return `echo '== fails'\nif { ${code.trim()}\n}; then echo 'it should have failed'; exit 99; fi`;
}

function waitFor(url: string): string {
  return `for _ in $(seq 600); do curl -sf ${url} > /dev/null && break; sleep 0.1; done`;
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
