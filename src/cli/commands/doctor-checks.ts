import { execFile } from "node:child_process";
import { access, constants, stat, statfs } from "node:fs/promises";
import { get } from "node:http";
import { createServer } from "node:net";
import { availableParallelism } from "node:os";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { ports as usualPorts } from "../../contracts/limits.js";
import type { DownloadProgress } from "../../models/hub/index.js";
import { hubSettings } from "../../models/hub/settings.js";
import { hostMemory, judgeMemory } from "../../models/memory.js";
import { resolveModel } from "../../models/resolve.js";
import { nameOf, type RpcServer, reachRpcServers } from "../../models/rpc.js";
import { bytes } from "../../terminal/index.js";
import { sentenceOf } from "../exit-code.js";

/** One thing that was looked at. */
export interface Finding {
  check: string;
  /** A problem keeps something from working, a warning may. */
  status: "ok" | "warning" | "problem";
  finding: string;
  /** What to do, unless all is well. */
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
/** Below this, a model of any use does not fit. */
const littleMemory = 2e9;
const littleDisk = 5e9;
const noDisk = 200e6;
/** A hub that is slower than this is as good as none. */
const hubMs = 5000;

/**
 * Looks at everything in order; what goes wrong in looking is a finding, too.
 * @param onDownload told of the model's download, where it has to come from the hub first
 * @param ports of the services, by name
 */
export async function findings(
  model: string,
  rpc: readonly RpcServer[] = [],
  onDownload?: (progress: DownloadProgress) => void,
  ports: Readonly<Record<string, number>> = usualPorts,
): Promise<Finding[]> {
  const found: Finding[] = [nodeVersion(process.versions.node)];
  const native = await addon();
  found.push(native.finding, await toolchain(native.module));
  if (native.module !== undefined) found.push(await graphics(native.module));
  found.push(memory(), ...(await disk()), ...(await allPorts(ports)), await hub());
  for (const server of rpc) found.push(await rpcServer(server));
  found.push(await modelFits(model, native.module, onDownload));
  return found;
}

/** Whether a version of Node.js is one that tapline runs on. */
export function nodeVersion(version: string): Finding {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const finding = `Node.js ${version}`;
  if (major > 20 || (major === 20 && minor >= 19)) return ok("node", finding);
  return problem("node", finding, "Install Node.js 20.19 or newer.");
}

async function addon(): Promise<{ finding: Finding; module?: Native }> {
  try {
    const module = await import("../../native/index.js");
    const { backend, llamaCpp, systemInfo } = module.backendInfo();
    const features = [...systemInfo.matchAll(/\b(AVX2|AVX512|NEON|SVE) = 1/g)].map(([, name]) => name);
    const { variant, passedOver } = module.addonInUse();
    const uses = features.length > 0 ? ` (${features.join(", ")})` : "";
    const finding = [`llama.cpp ${llamaCpp} for ${backend}${uses}, ${variant}`, ...passedOver].join("; ");
    return { finding: ok("addon", finding), module };
  } catch (error) {
    const [what, ...rest] = (error as Error).message.split("; ");
    const advice = rest.join("; ") || "Run `npm run build:native`.";
    return { finding: problem("addon", `${what}.`, advice[0]!.toUpperCase() + advice.slice(1)) };
  }
}

/** Only a build needs it, so without one it is a problem only when there is nothing built. */
async function toolchain(native: Native | undefined): Promise<Finding> {
  try {
    // The build is plain JavaScript outside src/, at the same distance from dist/.
    const folder = new URL("../../../scripts/build/toolchain.js", import.meta.url).href;
    const { checkToolchain } = (await import(folder)) as {
      checkToolchain(backend: string): { cmake: string; ninja?: string; ccache?: string };
    };
    const { cmake, ninja, ccache } = checkToolchain(native?.backendInfo().backend ?? "cpu");
    const tools = [cmake, ninja, ccache].filter((tool) => tool !== undefined);
    return ok("toolchain", tools.join(", "));
  } catch (error) {
    return notBuildable((error as Error).message, native !== undefined);
  }
}

/** @param message what is missing: how to bring it */
export function notBuildable(message: string, built: boolean): Finding {
  const [what, advice = "install tapline again."] = message.split(": ");
  return {
    check: "toolchain",
    status: built ? "warning" : "problem",
    finding: `${what}; the addon cannot be built again.`,
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
    return ok(check, `none; ${availableParallelism()} processor threads compute`);
  }
  return warning(
    check,
    `${seen.replace(/ \(UUID.*/, "")} is here, and the addon is built for ${backend}.`,
    "Install the CUDA toolkit and run `TAPLINE_BACKEND=cuda npm run build:native`.",
  );
}

function memory(): Finding {
  const { free, total } = hostMemory();
  const finding = `${bytes(free)} of ${bytes(total)} free`;
  if (free >= littleMemory) return ok("memory", finding);
  return warning("memory", finding, "End other programs; a model takes the size of its file and more.");
}

async function disk(): Promise<Finding[]> {
  const { taplineHome } = await import("../../files/home.js");
  // What is wrong with the settings is a finding about the hub.
  const settings = await hubSettings().catch(() => undefined);
  return Promise.all([
    ...(settings === undefined
      ? []
      : [diskOf("cache", settings.cache, "make room with tapline rm, or set HF_HOME to another disk.")]),
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
      `${folder} cannot be written by this account.`,
      `Change its owner, or set ${variable} to a folder of yours.`,
    );
  }
  const { bavail, bsize } = await statfs(there);
  const free = bavail * bsize;
  const status = free < noDisk ? "problem" : free < littleDisk ? "warning" : "ok";
  const advice = `Little is left in ${dirname(folder)}: ${remedy}`;
  return { check, status, finding: `${folder}, ${bytes(free)} free`, ...(status !== "ok" && { advice }) };
}

/** The folder, or what is there of the way to it: looking creates nothing. */
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
      if (await isTapline(port)) return ok(check, `${port} (${service}) is held by tapline`);
      return warning(
        check,
        `${port} (${service}) is held by another program.`,
        "Stop that, or start tapline with --port.",
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

/** Both kinds of service tell their health to programs, in JSON. */
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

/** Whether anything answers there, whatever it says. */
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
    if (offline) return ok("hub", `${endpoint} is not asked: HF_HUB_OFFLINE is set`);
    if (await answers(endpoint)) return ok("hub", `${endpoint} answers, ${as}`);
    return warning(
      "hub",
      `${endpoint} does not answer`,
      "Models that are here work; to download others, check the network, a proxy, or HF_ENDPOINT.",
    );
  } catch (error) {
    return problem("hub", sentenceOf(error), "Set the variable right.");
  }
}

async function rpcServer(server: RpcServer): Promise<Finding> {
  try {
    await reachRpcServers([server]);
    return ok("rpc", `${nameOf(server)} answers`);
  } catch (error) {
    const advice = "Start rpc-server there, from the same llama.cpp; docs/scaling.md says how.";
    return problem("rpc", sentenceOf(error), advice);
  }
}

/** Resolves a model and lays it out in memory. */
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
    const finding = `${model}, ${bytes(size)}; served with the usual context it takes ${bytes(needed)}`;
    if (fits === "yes") return ok(check, finding);
    return {
      check,
      status: fits === "no" ? "problem" : "warning",
      finding: sentence,
      advice: "Take a smaller quantisation or --ctx-size, or spread it with --rpc.",
    };
  } catch (error) {
    return problem(check, sentenceOf(error), "Name another with --model.");
  }
}
