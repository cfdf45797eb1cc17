import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ResearchClient } from "../../../src/client/index.js";
import { operations } from "../../../src/contracts/index.js";
import { type ResearchService, startResearch } from "../../client/research-service.js";
import { command, open } from "../../mcp/session.js";

const page = readFileSync(new URL("../../../docs/agents.md", import.meta.url), "utf8");
const blocks = (language: string) =>
  [...page.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))].map(
    ([, text]) => text as string,
  );

const folder = mkdtempSync(join(tmpdir(), "tapline-agents-"));
let service: ResearchService;
let environment: NodeJS.ProcessEnv;
test.before(async () => {
  service = await startResearch();
  const given = service.environment(await service.token());
  // `tapline` as installed, from the sources.
  const { command: node, args } = command([]);
  const words = [node, ...args.slice(0, -1)].map((word) => `'${word}'`).join(" ");
  writeFileSync(join(folder, "tapline"), `#!/bin/sh\nexec ${words} "$@"\n`);
  chmodSync(join(folder, "tapline"), 0o755);
  environment = { ...process.env, ...given, NO_COLOR: "1", PATH: `${folder}${delimiter}${process.env.PATH}` };
});
test.after(async () => {
  await service.close();
  rmSync(folder, { recursive: true, force: true });
});

test("the shell's commands work as the page says", async () => {
  const [exports, commands] = blocks("sh") as [string, string];
  const names = [...exports.matchAll(/^export (\w+)=/gm)].map(([, name]) => name);
  assert.equal(names.sort(), Object.keys(service.environment("")).sort());
  const [, sample] = blocks("json") as [string, string];
  writeFileSync(join(folder, "package.json"), sample);
  const client = new ResearchClient({}, environment);
  const { id } = (await client.listStudies()).items[0]!;
  const lines = commands.trim().split("\n");
  assert.is(lines.length, 7);
  for (const line of lines) {
    // The service answers from this very process, so nothing may block it.
    const { status, stderr, stdout } = await shell(line, { ...environment, STUDY: id });
    assert.is(status, 0, `${line}: ${stderr}`);
    assert.ok(stdout !== "" || line.includes(">"), line);
  }
  assert.is(JSON.parse(readFileSync(join(folder, "study.json"), "utf8")).id, id);
});

test("the program runs unchanged", async () => {
  const [program] = blocks("ts") as [string];
  const index = fileURLToPath(new URL("../../../src/client/index.ts", import.meta.url));
  const path = join(folder, "agent.mts");
  writeFileSync(path, program.replace('"tapline/client"', JSON.stringify(index)));
  Object.assign(process.env, environment);
  const printed: string[] = [];
  const { log } = console;
  console.log = (...words) => printed.push(words.join(" "));
  await import(pathToFileURL(path).href).finally(() => {
    console.log = log;
  });
  assert.match(
    printed.join("\n"),
    /steers politeness[\s\S]*\n3 comments\nreview at https:\/\/localhost:\d+\/drafts\//,
  );
});

test("the configuration starts both servers with exactly the listed tools", async () => {
  const [configuration] = blocks("json") as [string];
  const { mcpServers } = JSON.parse(configuration) as {
    mcpServers: Record<string, { command: string; args: string[]; env?: Record<string, string> }>;
  };
  const sections = { "tapline-research": "research", "tapline-lab": "lab" };
  assert.equal(Object.keys(mcpServers), Object.keys(sections));
  for (const [name, section] of Object.entries(sections)) {
    const { command, args, env = {} } = mcpServers[name]!;
    assert.equal([command, ...args.slice(0, 3)], ["npx", "tapline", "mcp", section]);
    const [, table] = page.split(`### \`tapline mcp ${section}\``);
    const named = [...table!.split("###")[0]!.matchAll(/^\| `(\w+)`/gm)].map(([, tool]) => tool);
    const given = { ...env, ...environment, AGENT_RESEARCH_ALLOW_DRAFTS: env.AGENT_RESEARCH_ALLOW_DRAFTS };
    const mcp = await open("current, 2025", args.slice(2), given);
    assert.equal((await mcp.tools()).map((tool) => tool.name).sort(), named.sort());
    await mcp.close();
    assert.is(mcp.stderr(), "");
  }
});

test("the page names the operations that lab_submit starts", () => {
  const [, named] = /^\| `lab_submit` +\| starts an experiment: (.*?) +\|$/m.exec(page) as unknown as [
    string,
    string,
  ];
  assert.equal(named.split(/, | or /), operations);
});

async function shell(line: string, env: NodeJS.ProcessEnv = environment) {
  const child = spawn("/bin/sh", ["-c", line], { cwd: folder, env });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (part) => {
    stdout += part;
  });
  child.stderr.on("data", (part) => {
    stderr += part;
  });
  const status = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { status, stdout, stderr };
}

test.run();
