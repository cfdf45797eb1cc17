import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { access, constants, stat, statfs } from "node:fs/promises";
import { get } from "node:http";
import { createServer } from "node:net";
import { availableParallelism } from "node:os";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { ports as usualPorts } from "../../contracts/limits.js";
import { version } from "../../contracts/version.js";
import type { DownloadProgress } from "../../models/hub/index.js";
import { hubSettings } from "../../models/hub/settings.js";
import { hostMemory, judgeMemory } from "../../models/memory.js";
import { resolveModel } from "../../models/resolve.js";
import { nameOf, type RpcServer, reachRpcServers } from "../../models/rpc.js";
import { bytes } from "../../terminal/index.js";
import { sentenceOf } from "../exit-code.js";

/** The result of one check. */
export interface Finding {
  check: string;
  /** A problem prevents something from working; a warning might. */
  status: "ok" | "warning" | "problem";
  finding: string;
  /** What to do about a problem or warning. */
  advice?: string;
}

const ok = (check: string, finding: string): Finding => ({ check, status: "ok", finding });
const unwell =
  (status: Finding["status"]) =>
  (check: string, finding: string, advice: string): Finding => ({ check, status, finding, advice });
const warning = unwell("warning");
const problem = unwell("problem");

type Native = typeof import("../../native/index.js");

const run = promisify(execFile);
/** Below this, no useful model fits. */
const littleMemory = 2e9;
const littleDisk = 5e9;
const noDisk = 200e6;
/** A slower hub counts as unreachable. */
const hubMs = 5000;

/**
 * Runs all checks in order. An error during a check is also a finding.
 * @param onDownload progress of the model's download, if it has to be downloaded from the hub
 * @param ports the services' ports by name
 */
export async function findings(
  model: string,
  rpc: readonly RpcServer[] = [],
  onDownload?: (progress: DownloadProgress) => void,
  ports: Readonly<Record<string, number>> = usualPorts,
): Promise<Finding[]> {
  const found: Finding[] = [nodeVersion(process.versions.node)];
  const native = await addon();
  found.push(native.finding);
  if (existsSync(toolchainModule)) found.push(await toolchain(native.module));
  if (native.module !== undefined) found.push(await graphics(native.module), await numbers(native.module));
  found.push(memory(), ...(await disk()), ...(await allPorts(ports)), await hub());
  for (const server of rpc) found.push(await rpcServer(server));
  found.push(await modelFits(model, native.module, onDownload));
  return found;
}

/** Checks that tapline supports a version of Node.js. */
export function nodeVersion(version: string): Finding {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const finding = `Node.js ${version}`;
  if (major > 20 || (major === 20 && minor >= 19)) return ok("node", finding);
  return problem("node", finding, "Install Node.js 20.19 or newer.");
}

async function addon(): Promise<{ finding: Finding; module?: Native }> {
  try {
    const module = await import("../../native/index.js");
    const { backend, llamaCpp, systemInfo, level } = module.backendInfo();
    const features = [...systemInfo.matchAll(/\b(AVX2|AVX512|NEON|SVE) = 1/g)].map(([, name]) => name);
    const { variant, passedOver } = module.addonInUse();
    const uses = features.length > 0 ? ` (${features.join(", ")})` : "";
    const artifact = `llama.cpp ${llamaCpp} for ${backend}${uses}, ${variant}`;
    const named = process.env.TAPLINE_LEVEL ? "named by TAPLINE_LEVEL" : "its best that this processor runs";
    const at = level === undefined ? "" : ` with kernels for ${level}, ${named}`;
    const faster = variant.startsWith("prebuilt") && level === undefined && backend === "cpu";
    const compile = faster
      ? [`${module.compileCommand()} makes a faster one for exactly this processor`]
      : [];
    const finding = [`${artifact}${at}`, ...compile, ...passedOver].join("; ");
    return { finding: ok("addon", finding), module };
  } catch (error) {
    const [what, ...rest] = (error as Error).message.split("; ");
    const advice = rest.join("; ") || "Reinstall tapline.";
    return { finding: problem("addon", `${what}.`, advice[0]!.toUpperCase() + advice.slice(1)) };
  }
}

// The build is plain JavaScript outside src/, at the same relative path from dist/. A Python wheel has none.
const toolchainModule = new URL("../../../scripts/build/toolchain.js", import.meta.url);

/** Only a build needs the toolchain, so a missing one is a problem only if nothing is built. */
async function toolchain(native: Native | undefined): Promise<Finding> {
  try {
    const { checkToolchain } = (await import(toolchainModule.href)) as {
      checkToolchain(backend: string): { cmake: string; ninja?: string; ccache?: string };
    };
    const { cmake, ninja, ccache } = checkToolchain(native?.backendInfo().backend ?? "cpu");
    const tools = [cmake, ninja, ccache].filter((tool) => tool !== undefined);
    return ok("toolchain", tools.join(", "));
  } catch (error) {
    return notBuildable((error as Error).message, native !== undefined);
  }
}

/** @param message "what is missing: how to install it" */
export function notBuildable(message: string, built: boolean): Finding {
  const [what, advice = "reinstall tapline."] = message.split(": ");
  return {
    check: "toolchain",
    status: built ? "warning" : "problem",
    finding: `${what}; the addon cannot be rebuilt.`,
    advice: advice.charAt(0).toUpperCase() + advice.slice(1),
  };
}

async function graphics(native: Native): Promise<Finding> {
  const check = "gpu";
  const { backend, devices } = native.backendInfo();
  const cards = devices.filter(({ kind }) => kind !== "cpu");
  if (cards.length > 0) {
    const texts = cards.map(
      ({ name, description, memoryFree, memoryTotal }) =>
        `${name}: ${description}, ${bytes(memoryFree)} of ${bytes(memoryTotal)} free`,
    );
    return ok(check, texts.join("; "));
  }
  const seen = await run("nvidia-smi", ["-L"], { timeout: 10_000 }).then(
    ({ stdout }) => stdout.trim().split("\n")[0] as string,
    () => "",
  );
  if (!seen.startsWith("GPU")) {
    return ok(check, `none; using ${availableParallelism()} processor threads`);
  }
  return warning(
    check,
    `${seen.replace(/ \(UUID.*/, "")} is present, but the addon is built for ${backend}.`,
    `Install the CUDA toolkit and run ${native.compileCommand("TAPLINE_BACKEND=cuda")}.`,
  );
}

/** Offers `tapline verify`, or its last result with this addon. */
async function numbers(native: Native): Promise<Finding> {
  const check = "numbers";
  const [{ savedVerification }, { failures }] = await Promise.all([
    import("../../verify/saved.js"),
    import("../../verify/words.js"),
  ]);
  const saved = await savedVerification();
  const { backend, llamaCpp } = native.backendInfo();
  const same =
    saved?.tapline === version &&
    saved.addon.backend === backend &&
    saved.addon.llama_cpp === llamaCpp &&
    saved.addon.variant === native.addonInUse().variant;
  if (saved === undefined || !same) {
    return ok(check, "not checked with this addon; `tapline verify` checks them in a minute or two");
  }
  const day = new Date(saved.created * 1000).toISOString().slice(0, 10);
  const [first] = failures(saved);
  if (first === undefined) {
    return ok(
      check,
      `${saved.checks.length} checks of ${saved.models.length} architectures passed on ${day}`,
    );
  }
  const advice = "Run tapline verify again; if it fails again, please report its line.";
  return problem(check, `tapline verify failed on ${day}: ${first}`, advice);
}

function memory(): Finding {
  const { free, total } = hostMemory();
  const finding = `${bytes(free)} of ${bytes(total)} free`;
  if (free >= littleMemory) return ok("memory", finding);
  return warning(
    "memory",
    finding,
    "Close other programs: a model needs at least as much memory as its file size.",
  );
}

async function disk(): Promise<Finding[]> {
  const { taplineHome } = await import("../../files/home.js");
  // Invalid settings are reported by the hub check.
  const settings = await hubSettings().catch(() => undefined);
  return Promise.all([
    ...(settings === undefined
      ? []
      : [diskOf("cache", settings.cache, "free space with tapline rm, or set HF_HOME to another disk.")]),
    diskOf("jobs", taplineHome(), "remove jobs with tapline rm, or set TAPLINE_HOME to another disk."),
  ]);
}

async function diskOf(check: string, folder: string, remedy: string): Promise<Finding> {
  const there = await existing(folder);
  try {
    await access(there, constants.W_OK);
  } catch {
    const variable = check === "cache" ? "HF_HOME" : "TAPLINE_HOME";
    return problem(
      check,
      `No write permission for ${folder}.`,
      `Change its owner, or set ${variable} to another folder.`,
    );
  }
  const { bavail, bsize } = await statfs(there);
  const free = bavail * bsize;
  const status = free < noDisk ? "problem" : free < littleDisk ? "warning" : "ok";
  const advice = `Little space left in ${dirname(folder)}: ${remedy}`;
  return { check, status, finding: `${folder}, ${bytes(free)} free`, ...(status !== "ok" && { advice }) };
}

/** The folder or its nearest existing parent: checks create nothing. */
async function existing(folder: string): Promise<string> {
  const found = await stat(folder).then(
    () => true,
    () => false,
  );
  return found || dirname(folder) === folder ? folder : existing(dirname(folder));
}

async function allPorts(ports: Readonly<Record<string, number>>): Promise<Finding[]> {
  return Promise.all(
    Object.entries(ports).map(async ([service, port]): Promise<Finding> => {
      const check = "port";
      if (await isFree(port)) return ok(check, `${port} (${service}) is free`);
      if (await isTapline(port)) return ok(check, `${port} (${service}) is in use by tapline`);
      return warning(
        check,
        `${port} (${service}) is in use by another program.`,
        "Stop it, or start tapline with --port.",
      );
    }),
  );
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

/** Both kinds of service report their health as JSON. */
async function isTapline(port: number): Promise<boolean> {
  const answers = await Promise.all(["/lab/v1/health", "/health"].map((path) => json(port, path)));
  return answers.some((answer) => answer !== undefined && "status" in answer);
}

function json(port: number, path: string): Promise<Record<string, unknown> | undefined> {
  return new Promise((resolve) => {
    const request = get({ host: "127.0.0.1", port, path, timeout: 2000 }, (response) => {
      let text = "";
      response.on("data", (part: Buffer) => {
        text = (text + part.toString()).slice(0, 10_000);
      });
      response.on("close", () => {
        try {
          const value: unknown = JSON.parse(text);
          resolve(
            typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined,
          );
        } catch {
          resolve(undefined);
        }
      });
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(undefined));
  });
}

/** Whether anything responds there. */
function answers(endpoint: string): Promise<boolean> {
  return fetch(endpoint, { method: "HEAD", redirect: "manual", signal: AbortSignal.timeout(hubMs) }).then(
    () => true,
    () => false,
  );
}

async function hub(): Promise<Finding> {
  try {
    const { endpoint, offline, token } = await hubSettings();
    const as = token === undefined ? "without a token" : "with a token";
    if (offline) return ok("hub", `${endpoint} not contacted: HF_HUB_OFFLINE is set`);
    if (await answers(endpoint)) return ok("hub", `${endpoint} responds, ${as}`);
    return warning(
      "hub",
      `${endpoint} does not respond`,
      "Downloaded models still work. To download more, check the network, the proxy and HF_ENDPOINT.",
    );
  } catch (error) {
    return problem("hub", sentenceOf(error), "Fix the variable.");
  }
}

async function rpcServer(server: RpcServer): Promise<Finding> {
  try {
    await reachRpcServers([server]);
    return ok("rpc", `${nameOf(server)} responds`);
  } catch (error) {
    const advice = "Start rpc-server there, from the same llama.cpp version; see docs/scaling.md.";
    return problem("rpc", sentenceOf(error), advice);
  }
}

/** Resolves a model and estimates its memory. */
async function modelFits(
  model: string,
  native: Native | undefined,
  onDownload?: (progress: DownloadProgress) => void,
): Promise<Finding> {
  const check = "model";
  try {
    const { path, weights } = await resolveModel(model, onDownload && { onDownload });
    const size = weights.reduce((sum, file) => sum + file.bytes, 0);
    if (native === undefined) return ok(check, `${model}, ${bytes(size)}`);
    const { needed, fits, sentence } = judgeMemory(await native.estimateMemory({ path }));
    const finding = `${model}, ${bytes(size)}; needs ${bytes(needed)} of memory with the default context`;
    if (fits === "yes") return ok(check, finding);
    return {
      check,
      status: fits === "no" ? "problem" : "warning",
      finding: sentence,
      advice: "Use a smaller quantisation or --ctx-size, or split the model with --rpc.",
    };
  } catch (error) {
    return problem(check, sentenceOf(error), "Choose another model with --model.");
  }
}
