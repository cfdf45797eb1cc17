import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { mark } from "../../../scripts/build/compiled.js";
import { clientSources } from "../../clients/support/python.js";
import type { Block } from "./pages.js";

const notebook = fileURLToPath(new URL("./notebook.py", import.meta.url));

/**
 * Whether a separate network is available: then the ports that pages name are free, whatever runs on this machine,
 * and nothing can be reached from there.
 */
export const ownNetwork = spawnSync("unshare", ["-rn", "ip", "link", "set", "lo", "up"]).status === 0;

/** A folder as `git clone` and `npm ci` leave it, with a separate home. */
export function cloneTo(folder: string, root: string, files: readonly string[]): void {
  const clone = join(folder, "tapline");
  for (const name of files) {
    if (!existsSync(join(root, name))) continue; // about to be committed as deleted
    mkdirSync(dirname(join(clone, name)), { recursive: true });
    copyFileSync(join(root, name), join(clone, name));
  }
  // What `npm ci` leaves. npx prepares a clone when it first runs there, so that dist/ must be the clone's own.
  for (const name of ["node_modules", ".build"]) symlinkSync(join(root, name), join(clone, name));
  cpSync(join(root, "dist"), join(clone, "dist"), { recursive: true });
  writeFileSync(join(clone, mark), "");
  for (const name of ["bin", "home", "tmp"]) mkdirSync(join(folder, name));
  const shim = (name: string, line: string) => {
    writeFileSync(join(folder, "bin", name), `#!/bin/sh\n${line}\n`);
    chmodSync(join(folder, "bin", name), 0o755);
  };
  shim("tapline", `exec node '${join(clone, "bin/tapline.js")}' "$@"`);
  shim("npm", 'echo "npm $*"'); // installing, and the tests, are the whole run's
}

/** A block that has not ended by then never will. */
const stuckMs = 900_000;

export interface Pasted {
  code: number;
  output: string;
}

/** Somebody who pastes blocks, one after the other, into one shell and one notebook. */
export class Reader {
  readonly #folder: string;
  readonly #shell: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  #ended = false;
  #count = 0;

  /**
   * @param folder what `cloneTo` has made
   * @param python a Python 3 with NumPy
   */
  constructor(folder: string, python: string) {
    this.#folder = folder;
    const { PATH, LANG, LC_ALL } = process.env;
    // Services that a page starts end with its shell.
    const shell = `trap 'kill $(jobs -p) 2> /dev/null; wait' EXIT
paste_python() {
  [[ -v notebook ]] || coproc notebook { exec '${python}' -B '${notebook}'; }
  printf '%s\\t%s\\n' "$1" "$2" >&"\${notebook[1]}"
  local code=1
  read -r code <&"\${notebook[0]}"
  return "$code"
}
while IFS= read -r line; do eval "$line"; done`;
    const words = ["bash", "-c", ownNetwork ? `ip link set lo up\n${shell}` : shell];
    const [program, ...rest] = ownNetwork ? ["unshare", "-rn", ...words] : words;
    this.#shell = spawn(program as string, rest, {
      cwd: join(folder, "tapline"),
      detached: true,
      stdio: ["pipe", "pipe", "inherit"],
      env: {
        PATH: `${join(folder, "bin")}${delimiter}${PATH}`,
        HOME: join(folder, "home"),
        TMPDIR: join(folder, "tmp"),
        // What `pip install ./clients/python/…` leaves.
        PYTHONPATH: clientSources.join(delimiter),
        TERM: "dumb",
        // Compiled for other settings than a reader's, the addon is not out of date.
        TAPLINE_SKIP_BUILD: "1",
        ...(LANG === undefined ? {} : { LANG }),
        ...(LC_ALL === undefined ? {} : { LC_ALL }),
      },
    });
    this.#shell.on("exit", () => {
      this.#ended = true;
    });
    this.#shell.stdin?.on("error", () => {}); // a shell that has ended; its missing answer says so
    this.#answers = createInterface({ input: this.#shell.stdout as Readable })[Symbol.asyncIterator]();
  }

  /** Runs a block. A failure ends the shell, as nothing after it could be believed. */
  async paste({ language, text }: Block): Promise<Pasted> {
    const number = ++this.#count;
    const file = (end: string) => join(this.#folder, `block-${number}${end}`);
    const output = file(".out");
    writeFileSync(output, "");
    let run: string;
    if (language === "python") {
      writeFileSync(file(".py"), text);
      run = `paste_python '${file(".py")}' '${output}'`;
    } else if (language === "js" || language === "ts") {
      const module = join(this.#folder, "tapline", `block-${number}.mjs`);
      writeFileSync(module, text);
      run = `node '${module}'`;
    } else {
      writeFileSync(file(".sh"), `set -euo pipefail\n${text}\n`);
      run = language === "sh" ? `. '${file(".sh")}'` : `( . '${file(".sh")}' )`;
    }
    this.#shell.stdin?.write(
      `${run} < /dev/null >> '${output}' 2>&1; code=$?; set +euo pipefail; echo "$code"\n`,
    );
    const stuck = setTimeout(() => this.#kill(), stuckMs);
    const { value } = await this.#answers.next();
    clearTimeout(stuck);
    return { code: value === undefined ? 1 : Number(value), output: readFileSync(output, "utf8") };
  }

  /** Ends the shell, with the services in it. */
  async close(): Promise<void> {
    this.#shell.stdin?.end();
    if (this.#ended) return;
    const slow = setTimeout(() => this.#kill(), 20_000);
    await once(this.#shell, "exit");
    clearTimeout(slow);
  }

  #kill(): void {
    if (!this.#ended) process.kill(-(this.#shell.pid as number), "SIGKILL");
  }
}
