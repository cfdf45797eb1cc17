import { spawn } from "node:child_process";
import { once } from "node:events";
import { UserError } from "../contracts/user-error.js";

const windows = process.platform === "win32";

/** The editor from VISUAL or EDITOR, or the system's own in a terminal. @throws UserError if there is none */
export function editorCommand(environment: NodeJS.ProcessEnv = process.env): string {
  const named = environment.VISUAL || environment.EDITOR;
  if (named) return named;
  if (process.stdin.isTTY && process.stdout.isTTY) return windows ? "notepad" : "vi";
  throw new UserError(
    "No terminal or editor: set VISUAL or EDITOR, or use --no-edit with the text in options.",
  );
}

/** Opens a file and waits until the editor is closed. @throws UserError if it does not start or fails */
export async function edit(command: string, file: string): Promise<void> {
  // Through a shell, as git does: the variable may contain options.
  const child = windows
    ? spawn(`${command} "${file}"`, { shell: true, stdio: "inherit" })
    : spawn("sh", ["-c", `${command} "$@"`, command, file], { stdio: "inherit" });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new UserError(`The editor (${command}) exited with ${code ?? "a signal"}.`);
}
