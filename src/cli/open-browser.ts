import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** So long a browser may take to read the file, in milliseconds. */
const patienceMs = 60_000;

/**
 * Opens a link in this user's browser without naming it to anybody: a program's arguments can be read by every user of
 * the machine, so the browser is given a private file that leads there. Where there is no browser of this machine to be
 * seen (SSH, WSL, no display) nothing is opened; the link was printed.
 * @param opened after which the file is not needed any more
 * @returns removes the file
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
  // Who has no such program opens the link that was printed.
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

/** What opens a file on this system; undefined where no browser would be seen. */
export function opener(environment: NodeJS.ProcessEnv, platform: NodeJS.Platform): string[] | undefined {
  if (environment.SSH_CONNECTION !== undefined || environment.WSL_DISTRO_NAME !== undefined) return undefined;
  if (platform === "darwin") return ["open"];
  if (platform === "win32") return ["explorer.exe"];
  const display = environment.WAYLAND_DISPLAY ?? environment.DISPLAY;
  return display === undefined || display === "" ? undefined : ["xdg-open"];
}

/** A page that goes on to the link at once. The link is ours: base64url and an address. */
export function leadingTo(link: string): string {
  return `<!doctype html><meta charset="utf-8"><title>tapline workbench</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=${link}">
<p>The workbench opens; if it does not, open the link that the terminal shows.</p>
`;
}
