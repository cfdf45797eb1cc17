import { spawn } from "node:child_process";
import { once } from "node:events";
import { UserError } from "../contracts/user-error.js";

/** The editor that the environment names, as other programs find it. @throws UserError where there is none */
export function editorCommand(environment: NodeJS.ProcessEnv = process.env): string {
  const named = environment.VISUAL || environment.EDITOR;
  if (named) return named;
  if (process.stdin.isTTY && process.stdout.isTTY) return "vi";
  throw new UserError(
    "There is no terminal and no editor: set VISUAL or EDITOR, or use --no-edit with words from flags.",
  );
}

/** Opens a file and waits until the editor is closed. @throws UserError when it cannot start or fails */
export async function edit(command: string, file: string): Promise<void> {
  // As git does it: the variable may hold options, and is the user's own.
  const child = spawn("sh", ["-c", `${command} "$@"`, command, file], { stdio: "inherit" });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new UserError(`The editor (${command}) ended with ${code ?? "a signal"}.`);
}
