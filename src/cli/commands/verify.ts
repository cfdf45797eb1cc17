import type { Command } from "commander";
import type { Verification } from "../../verify/run.js";
import { exitCodes } from "../exit-code.js";
import { filled } from "../options.js";

interface VerifyOptions {
  out?: string;
  json?: boolean;
  quiet?: boolean;
}

/** `tapline verify`: whether this machine computes what llama.cpp's own program computes. */
export function registerVerify(program: Command): void {
  program
    .command("verify")
    .description("Check this machine's numbers: ten tiny models against llama.cpp's own values.")
    .option("--out <file>", "write the result as JSON to this file instead of TAPLINE_HOME", filled)
    .option("--json", "print the result as JSON instead of one line")
    .option("--quiet", "hide progress")
    .addHelpText(
      "after",
      `
Checks block outputs, edits, texts in one batch, live requests and quantized
weights of ten architectures, at each instruction-set level that the addon has
kernels for, and on each GPU, whole and half. Takes a minute or two, needs no
network, and ends with one line to share. The exit code is 1 if a check fails.

Examples:
  tapline verify
  tapline verify --out verification.json
  tapline verify --json | jq '.checks[] | select(.ok | not)'`,
    )
    .action(verify);
}

async function verify({ out, json, quiet }: VerifyOptions): Promise<void> {
  const [
    { verifyMachine },
    { failure, verificationLine },
    { saveVerification },
    { ProgressLine },
    { print, printJson, shortPath, unwritable },
    { endBy, stoppable },
  ] = await Promise.all([
    import("../../verify/run.js"),
    import("../../verify/words.js"),
    import("../../verify/saved.js"),
    import("../../terminal/index.js"),
    import("../output.js"),
    import("../stop-signal.js"),
  ]);
  const line = new ProgressLine(process.stderr);
  const signal = stoppable();
  let result: Verification;
  try {
    result = await verifyMachine({
      signal,
      onProgress: (what, done, total) => {
        if (quiet || json) return;
        line.show(`${Math.round((100 * done) / total)} %  ${what}`, "verify");
      },
      onCheck: (check) => {
        if (check.ok) return;
        line.clear();
        process.stderr.write(`✘ ${failure(check)}\n`);
      },
    });
  } catch (error) {
    if (!signal.aborted) throw error;
    line.clear();
    return endBy(signal.reason as NodeJS.Signals);
  }
  line.clear();
  const path = await saveVerification(result, out).catch((error) => {
    throw unwritable(out ?? "the result", error);
  });
  if (result.checks.some(({ ok }) => !ok)) process.exitCode = exitCodes.failed;
  if (json) return printJson(result);
  await print(`${verificationLine(result)}\n\n${shortPath(path)}`);
}
