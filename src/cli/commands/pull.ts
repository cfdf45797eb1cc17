import type { Command } from "commander";
import { stopSignal } from "../stop-signal.js";

interface PullOptions {
  revision?: string;
  json?: boolean;
}

/** `tapline pull`: downloads a model ahead of time. */
export function registerPull(program: Command): void {
  program
    .command("pull")
    .description("Download a model from the hub into the shared cache, or resume an interrupted download.")
    .argument("<model>", "owner/name, owner/name:Q8_0 or owner/name/file.gguf")
    .option("--revision <revision>", "branch, tag or commit (default: main)")
    .option("--json", "print its location as JSON")
    .addHelpText(
      "after",
      `
HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE work as in
Hugging Face's own tools.

Examples:
  tapline pull ggml-org/gemma-3-1b-it-GGUF
  tapline pull Qwen/Qwen2.5-0.5B-Instruct-GGUF:Q8_0 --revision main`,
    )
    .action(pull);
}

async function pull(model: string, options: PullOptions): Promise<void> {
  const stopped = stopSignal();
  const [{ resolveModel }, { bytes }, { downloading }, { print, printJson }] = await Promise.all([
    import("../../models/resolve.js"),
    import("../../terminal/index.js"),
    import("../download-line.js"),
    import("../output.js"),
  ]);
  const { revision } = options;
  const resolved = await downloading(stopped, "pull", (download) =>
    resolveModel(model, { ...download, ...(revision !== undefined && { revision }) }),
  );
  if (resolved === undefined) return;
  if (options.json) return printJson(resolved);
  const size = resolved.weights.reduce((sum, file) => sum + file.bytes, 0);
  const commit = resolved.commit === null ? "" : ` (commit ${resolved.commit.slice(0, 12)})`;
  await print(`${model} is at ${resolved.path}: ${bytes(size)}${commit}`);
}
