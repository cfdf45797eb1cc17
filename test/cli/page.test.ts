import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { program } from "../support/program.js";
import { command } from "./in-process.js";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const tsx = import.meta.resolve("tsx");
const page = readFileSync(join(repository, "docs/command-line.md"), "utf8");

const root = mkdtempSync(join(tmpdir(), "tapline-page-"));
const services: ChildProcess[] = [];
test.after(async () => {
  process.chdir(tmpdir());
  await Promise.all(
    services.map((service) => {
      service.kill("SIGTERM");
      return once(service, "exit");
    }),
  );
  rmSync(root, { recursive: true, force: true });
});

/** The page's commands, in order; a line that ends with a backslash goes on in the next. */
const commands = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block]) =>
  (block as string).replaceAll("\\\n", "").trim().split("\n"),
);
const hasJq = spawnSync("jq", ["--version"]).status === 0;

test("every command of the program is on the page", async () => {
  const { stdout } = await command(["--help"]);
  const names = [...stdout.matchAll(/^ {2}([a-z]+)(?= |$)/gm)].map(([, name]) => name as string);
  assert.ok(names.length > 20);
  for (const name of names.filter((word) => word !== "help")) {
    assert.match(page, new RegExp(`\`(tapline )?${name}[ \`]`), name);
  }
});

test("every command has a description, and help with an example", async () => {
  const { stdout } = await command(["completion", "bash"]);
  const paths = [...stdout.matchAll(/^ {4}'([a-z ]*)'\)$/gm)].map(([, path]) => path as string);
  for (const path of paths.filter((words) => !["", "study", "mcp"].includes(words))) {
    const help = await command([...path.split(" "), "--help"]);
    assert.match(help.stdout, /^Usage: tapline .*\n\n\S/, path);
    assert.match(help.stdout, /Examples:\n {2}\S/, path);
  }
});

test("the commands of the page run in order", async () => {
  const examples = join(repository, "docs/examples");
  for (const name of ["capitals.txt", "reviews.csv"]) copyFileSync(join(examples, name), join(root, name));
  cpSync(examples, join(root, "docs/examples"), { recursive: true });
  const shims = join(root, "bin");
  mkdirSync(shims);
  writeFileSync(
    join(shims, "tapline"),
    `#!/bin/sh\nexec "${process.execPath}" ${program.map((word) => `"${word}"`).join(" ")} "$@"\n`,
    {
      mode: 0o755,
    },
  );
  // Processes that this one starts from another folder must find their loader, too.
  process.execArgv = process.execArgv.map((word) => (word === "tsx" ? tsx : word));
  process.env.PATH = `${shims}:${process.env.PATH}`;
  process.env.TAPLINE_HOME = join(root, "home");
  process.env.HF_HOME = join(root, "hub");
  process.env.HF_HUB_OFFLINE = "1";
  process.chdir(root);

  const addresses = new Map<string, string>();
  for (const line of commands) {
    if (!hasJq && line.includes("jq ")) continue;
    const here = [...addresses].reduce((text, [usual, actual]) => text.replaceAll(usual, actual), line);
    if (here.endsWith(" &")) {
      const [service, url] = await startService(wordsOf(here.slice(0, -2)).slice(1));
      if (service === "lab") process.env.TAPLINE_LAB_URL = url;
      if (service === "serve") {
        process.env.TAPLINE_URL = url;
        addresses.set("http://127.0.0.1:8971", url);
      }
    } else if (/[|<>$]/.test(here)) {
      const { status, stderr } = await inShell(here);
      assert.is(status, 0, `${line}: ${stderr}`);
    } else {
      const { code, stdout, stderr } = await command(wordsOf(here).slice(1));
      assert.is(code, 0, `${line}: ${stderr}`);
      assert.is.not(stdout, "", line);
    }
  }
  for (const file of [
    "peru.html",
    "egypt.html",
    "again/activations.npz",
    "demo/report.json",
    "tapline.bash",
  ]) {
    assert.ok(existsSync(join(root, file)), file);
  }
});

/** The words of a plain command: quotes enclose, nothing expands. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? (plain as string));
}

async function inShell(line: string): Promise<{ status: number | null; stderr: string }> {
  const child = spawn("bash", ["-o", "pipefail", "-ec", line], { stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  const [status] = await once(child, "close");
  return { status, stderr };
}

/** Starts a service as the page does, but on a free port. */
async function startService(words: string[]): Promise<[name: string, url: string]> {
  const child = spawn(process.execPath, [...program, ...words, "--port", "0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  services.push(child);
  let said = "";
  for await (const chunk of child.stdout) {
    said += chunk;
    const url = /http:\/\/[\w.:]+/.exec(said)?.[0];
    if (url !== undefined && said.includes("\n")) {
      child.stdout.resume();
      return [words[0] as string, url];
    }
  }
  throw new Error(`tapline ${words.join(" ")} ended: ${said}`);
}

test.run();
