/** Programs that tests need, from the tree that the addon is built in. */
import { execFile } from "node:child_process";
import { realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

const paths = new Map<string, Promise<string>>();

/**
 * The path of a program, linked where nobody has since the last change. By the checkout whose objects these are,
 * which a copy of the sources only links to; and without what stands before this process, beside which compilers hang.
 */
export function builtTool(
  name:
    | "rpc-server"
    | `tapline-${"denormals" | "fixed-product" | "graph-points" | "instructions" | "row-maps" | "teams"}`,
): Promise<string> {
  const known = paths.get(name);
  if (known) return known;
  const path = build(name);
  paths.set(name, path);
  return path;
}

async function build(name: string): Promise<string> {
  const checkout = dirname(realpathSync(new URL("../../.build", import.meta.url)));
  const { LD_PRELOAD: _sanitizer, ...env } = process.env;
  const { stdout } = await run(process.execPath, [join(checkout, "scripts/build/tools.js"), name], { env });
  return stdout.trim().split("\t")[1]!;
}
