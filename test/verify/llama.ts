/**
 * Checks all assumptions about llama.cpp against a source tree: `npm run verify:llama -- DIR`. DIR is an unpacked
 * source tree; the default is the pinned release. docs/contributing/upgrading.md describes each check and what to do if it differs. It builds in `.build/llama-vVERSION`, leaves the addon in use alone, and prints one table.
 *   --all             every model of the model checks, instead of a sample
 *   --sources         only what is read in the sources; nothing is compiled
 *   --only PATTERN    checks whose name matches this regular expression; what they need is built
 *   --jobs N          models at the same time (default 2)
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { landmark, llamaCpp } from "../../scripts/build/llama.js";
import { buildRoot, root } from "../../scripts/build/paths.js";
import { ensureSource, linkSource, versionOf } from "../../scripts/build/source.js";
import { rpcProtocol, sourceChecks, sourcesIn } from "./llama/sources.js";
import { printTable, type Row, runProgram, timed } from "./llama/steps.js";

/** As in the CI run: dense, experts, recurrent, hybrid, shared keys, and models that llama.cpp computes incorrectly. */
const samples = {
  architectures: "^(llama|qwen3moe|jamba|mamba2|gemma3|deepseek2|falcon-h1|phi2|gpt-oss|nemotron_h|plamo2)-",
  live: "^(llama|qwen3moe|jamba|mamba2|gemma3|deepseek2|falcon-h1|phi2|gpt-oss)-",
  quantised: "^(minimax-01|deepseek2|bloom|gemma2|gpt-oss)-",
  devices: "^(llama|qwen3moe|jamba|llada|deepseek2|gemma3|mamba)-",
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    all: { type: "boolean", default: false },
    sources: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    jobs: { type: "string", default: String(Math.min(2, availableParallelism())) },
  },
});

async function treeOf(named: string | undefined): Promise<string> {
  if (named === undefined) return (await ensureSource({ env: { ...process.env, LLAMA_CPP_DIR: "" } })).dir;
  const dir = resolve(named);
  if (!existsSync(join(dir, landmark))) {
    throw new Error(`${dir} is not a llama.cpp source tree with tools/server (it has no ${landmark}).`);
  }
  return dir;
}

/** Predicted micro-batches against llama.cpp's own, on random batches. */
async function compareRowMaps(program: string): Promise<string[]> {
  const problems: string[] = [];
  for (const seed of ["29", "30", "31"]) {
    const { stdout } = await promisify(execFile)(program, ["5000", seed]);
    const found = JSON.parse(stdout) as Record<
      string,
      { compared: number; divided: number; differing: number }
    >;
    for (const [split, { compared, divided, differing }] of Object.entries(found)) {
      if (differing > 0)
        problems.push(`${split}: ${differing} of ${compared} random batches are split differently`);
      if (divided === 0) problems.push(`${split}: no random batch was divided, so nothing was compared`);
    }
  }
  return problems;
}

async function main(): Promise<boolean> {
  const dir = await treeOf(positionals[0]);
  const version = versionOf(dir);
  console.log(`llama.cpp v${version} in ${dir}; tapline is made for v${llamaCpp.version}.\n`);
  // A modified copy has the same version but needs its own tree, because Ninja compares times only.
  const id = createHash("sha256").update(dir).digest("hex").slice(0, 8);
  const pinned = positionals[0] === undefined;
  const tree = `llama-v${version}${pinned ? "" : `-${id}`}`;
  const wanted = new RegExp(values.only);
  const rows: Row[] = [];
  const add = async (check: string, run: () => Promise<string[]> | string[]) => {
    if (!wanted.test(check)) return true;
    const row = await timed(check, run);
    rows.push(row);
    console.log(`${row.result.padEnd(8)} ${check}${row.different === "" ? "" : `: ${row.different}`}`);
    return row.result === "holds";
  };
  const skip = (check: string, why: string) => {
    if (wanted.test(check)) rows.push({ check, result: "not run", seconds: 0, different: why });
  };

  const sources = sourcesIn(dir);
  for (const check of sourceChecks) await add(check.name, () => check.find(sources));

  if (!values.sources) {
    const env: NodeJS.ProcessEnv = {
      ...process.env,
      TAPLINE_TREE: tree,
      TAPLINE_BACKEND: "cpu", // the checks compare with its numbers
      // A link in the build folder, as for the pinned release, whose own link must not be replaced.
      LLAMA_CPP_DIR: pinned
        ? ""
        : linkSource(dir, version === llamaCpp.version ? `${version}-${id}` : version),
      TAPLINE_ADDON: join(buildRoot, tree, "addon", "tapline.node"),
    };
    const logs = join(buildRoot, "verify", tree);
    const node = (name: string, args: readonly string[], telling: RegExp) =>
      runProgram(process.execPath, args, {
        log: join(logs, `${name.replaceAll(" ", "-")}.log`),
        env,
        cwd: root,
        telling,
      });
    const compilerErrors = /\berror\b[: ]|undefined reference|no longer has/i;
    const tools = (name: string, ...targets: string[]) =>
      node(name, ["scripts/build/tools.js", ...targets], compilerErrors);
    const script = (name: string, file: string, ...args: string[]) =>
      node(
        name,
        ["--import", "tsx", `test/verify/${file}.ts`, "--jobs", values.jobs, ...args],
        /^failed |\sfailed: |^(Refused, and|At least)/,
      );
    const some = (kind: keyof typeof samples) => (values.all ? [] : ["--only", samples[kind]]);
    const tests = (name: string, ...patterns: string[]) =>
      node(
        name,
        ["--import", "tsx", "test/run.ts", ...patterns, "--timeout", "1800"],
        /^\s*FAIL|not ok|AssertionError/,
      );

    await add("assumptions", () => tools("assumptions", "tapline-assumptions"));
    await add("row maps", async () => {
      const problems = await tools("row maps", "tapline-row-maps");
      return problems.length > 0
        ? problems
        : compareRowMaps(join(buildRoot, tree, "bin", "tapline-row-maps"));
    });
    // The remaining checks need it.
    const needed = ["addon", "architectures", "live", "quantised", "devices", "serving", "rpc", "twin"];
    if (needed.some((name) => wanted.test(name))) {
      const row = await timed("addon", () =>
        node("addon", ["scripts/build/install.js", "--verbose", "--no-activate"], compilerErrors),
      );
      rows.push(row);
      console.log(`${row.result.padEnd(8)} addon${row.different === "" ? "" : `: ${row.different}`}`);
      const models = join(logs, "models");
      const checks: Record<string, () => Promise<string[]>> = {
        architectures: () =>
          script("architectures", "architectures", "--models", models, ...some("architectures")),
        live: () => script("live", "architectures", "--models", models, "--live", ...some("live")),
        quantised: () =>
          script("quantised", "architectures", "--models", models, "--quantised", ...some("quantised")),
        devices: () => script("devices", "devices", ...some("devices")),
        serving: () => tests("serving", "engine/", "inference/live", "inference/llama-server"),
        rpc: () => tests("rpc", "rpc/"),
        twin: () => tests("twin", "stress/twin"),
      };
      for (const [name, run] of Object.entries(checks)) {
        if (row.result !== "holds") skip(name, "it needs the addon");
        // The services wait indefinitely for a server with their own version.
        else if (name === "rpc" && rpcProtocol.find(sources).length > 0) skip(name, "the protocol differs");
        else await add(name, run);
      }
    }
    console.log(`\nLogs: ${relative(root, logs)}`);
  }

  if (rows.length === 0) console.log(`No check matches ${values.only}.`);
  else console.log(`\n${printTable(rows)}`);
  return rows.length > 0 && rows.every(({ result }) => result === "holds");
}

main().then(
  (good) => {
    process.exitCode = good ? 0 : 1;
  },
  (error: Error) => {
    console.error(`tapline: ${error.message}`);
    process.exitCode = 1;
  },
);
