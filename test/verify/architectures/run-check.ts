import { spawn } from "node:child_process";
import { once } from "node:events";
import { setPriority } from "node:os";
import type { ModelReport, Outcome } from "./report.js";

/** A hang, not slowness: on a machine that others use, too, a model of ten seconds has taken five minutes. */
const timeoutMs = 900_000;

/**
 * Checks one model in a separate process, which prints a {@link ModelReport}; a crash or a hang fails the model and
 * nothing else.
 */
export async function runCheck(
  model: string,
  script: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<Outcome> {
  const started = Date.now();
  const child = spawn(process.execPath, ["--import", "tsx", script, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env,
  });
  if (child.pid !== undefined) setPriority(child.pid, 10);
  let output = "";
  let log = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    child.kill("SIGKILL");
  }, timeoutMs);
  const [code, signal] = await once(child, "close");
  clearTimeout(timer);
  const seconds = (Date.now() - started) / 1000;
  const failed = (reason: string): Outcome => ({ model, verdict: "failed", reason, seconds });
  if (timedOut) return failed(`did not end within ${timeoutMs / 1000} s`);
  if (code !== 0)
    return failed(`ended with ${signal ?? code}: ${log.trim().split("\n").slice(0, 3).join(" ")}`);
  const report = JSON.parse(output) as ModelReport;
  return { model, ...judge(report), seconds, report };
}

function judge(report: ModelReport): Pick<Outcome, "verdict" | "reason"> {
  const wrong = report.checks.filter(({ ok }) => !ok);
  if (wrong.length > 0 || report.checks.length === 0) {
    return { verdict: "failed", reason: wrong.map(({ name, detail }) => `${name}: ${detail}`).join(" | ") };
  }
  return report.refused === ""
    ? { verdict: "holds", reason: "" }
    : { verdict: "refused", reason: report.refused };
}
