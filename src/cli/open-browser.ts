import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Time for the browser to read the file, in milliseconds. */
const patienceMs = 60_000;

/**
 * Opens a link in this user's browser without exposing it: every user of the machine can read a program's arguments, so
 * the browser gets a private file that redirects to the link. Opens nothing without a local browser (SSH, WSL, no
 * display); the link is printed anyway.
 * @param opened resolves when the file is no longer needed
 * @returns a function that removes the file
 */
export async function openPrivately(
  link: string,
  opened: Promise<void>,
  environment = process.env,
  platform = process.platform,
): Promise<() => Promise<void>> {
  const program = opener(environment, platform);
  if (program === undefined) return async () => {};
  const folder = await mkdtemp(join(tmpdir(), "tapline-open-"));
  const remove = () => rm(folder, { recursive: true, force: true });
  const file = join(folder, "open.html");
  await writeFile(file, leadingTo(link), { mode: 0o600, flag: "wx" });
  const [command, ...words] = program as [string, ...string[]];
  const child = spawn(command, [...words, file], { stdio: "ignore", detached: true });
  // Without such a program, users can open the printed link.
  child.once("error", () => void remove());
  child.unref();
  const timer = setTimeout(() => void remove(), patienceMs);
  timer.unref();
  void opened.then(remove);
  return () => {
    clearTimeout(timer);
    return remove();
  };
}

/** The command that opens a file on this system; undefined without a visible browser. */
export function opener(environment: NodeJS.ProcessEnv, platform: NodeJS.Platform): string[] | undefined {
  if (environment.SSH_CONNECTION !== undefined || environment.WSL_DISTRO_NAME !== undefined) return undefined;
  if (platform === "darwin") return ["open"];
  if (platform === "win32") return ["explorer.exe"];
  const display = environment.WAYLAND_DISPLAY ?? environment.DISPLAY;
  return display === undefined || display === "" ? undefined : ["xdg-open"];
}

/** A page that redirects to the link. The link needs no escaping: it is an address with base64url. */
export function leadingTo(link: string): string {
  return `<!doctype html><meta charset="utf-8"><title>tapline workbench</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=${link}">
<p>Opening the workbench… If nothing happens, open the link in the terminal.</p>
`;
}
