/**
 * A copy of the checkout that faults go into. Beside each file of TypeScript lies the JavaScript that it compiles to, so
 * that a test starts without a compiler, in a third of the time; `dist` is the sources, so that commands and workers
 * which tests start have the fault, too.
 */
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";

export const root = fileURLToPath(new URL("../../", import.meta.url));

/** The checkout's files, tracked or not yet. */
export function checkoutFiles(): string[] {
  return execFileSync("git", ["ls-files", "-co", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 1e8,
  })
    .split("\n")
    .filter((file) => file !== "" && existsSync(join(root, file)));
}

export class SourceCopy {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Makes the copy; this process, and what it starts, goes there, and takes it away at its end. */
  static async make(): Promise<SourceCopy> {
    const copy = new SourceCopy(mkdtempSync(join(tmpdir(), "tapline-mutation-")));
    const { folder } = copy;
    process.on("exit", () => {
      try {
        rmSync(folder, { recursive: true, force: true });
      } catch (error) {
        // A test that was ended may have left something mounted.
        console.log(`${folder} stays: ${(error as Error).message}`);
      }
    });
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));
    const files = checkoutFiles();
    for (const file of files) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      copyFileSync(join(root, file), join(folder, file));
    }
    await Promise.all(files.filter(isPlain).map((file) => copy.write(file, copy.read(file))));
    for (const name of ["node_modules", ".build"]) symlinkSync(join(root, name), join(folder, name));
    symlinkSync("src", join(folder, "dist"));
    // What tests that are ended leave behind goes with the copy. Short, because sockets lie there, too; open, because
    // a database may run as somebody else.
    mkdirSync(join(folder, "t"));
    chmodSync(folder, 0o755);
    chmodSync(join(folder, "t"), 0o1777);
    process.env.TMPDIR = join(folder, "t");
    process.env.TAPLINE_TEST_TYPESCRIPT = join(folder, "t", "typescript");
    // What several files need is made once: an empty database.
    mkdirSync(join(folder, "t", "shared"));
    process.env.TAPLINE_TEST_SHARED = join(folder, "t", "shared");
    process.env.TAPLINE_TEST_BUILT = "1";
    process.chdir(folder);
    return copy;
  }

  /**
   * While something runs, processes that answer their parent write their coverage before they do: a parent that has the
   * answer may end them at once, and a process that is killed writes nothing.
   */
  async withLastWords<T>(run: () => Promise<T>): Promise<T> {
    const speakers = checkoutFiles().filter(
      (file) => isPlain(file) && file.startsWith("src/") && this.read(file).includes("process.send?.("),
    );
    for (const file of speakers) appendFileSync(join(this.folder, asPlain(file)), lastWords);
    try {
      return await run();
    } finally {
      for (const file of speakers) await this.write(file, this.read(file));
    }
  }

  read(file: string): string {
    return readFileSync(join(this.folder, file), "utf8");
  }

  /** Puts a text in a file's place. False, with nothing changed, if it isn't a program. */
  async write(file: string, text: string): Promise<boolean> {
    if (isPlain(file)) {
      const options = { loader: "ts", target: "es2022", sourcemap: "inline", sourcefile: file } as const;
      const made = await transform(text, options).catch(() => undefined);
      if (made === undefined) return false;
      writeFileSync(join(this.folder, asPlain(file)), made.code);
    }
    writeFileSync(join(this.folder, file), text);
    return true;
  }
}

/** At the end of a module, where it moves nothing in its source map. */
const lastWords = `
import { takeCoverage } from "node:v8";
if (process.send) {
  const send = process.send.bind(process);
  process.send = (message, ...rest) => {
    if (message?.type !== "progress") takeCoverage();
    return send(message, ...rest);
  };
}
`;

/** A TypeScript file whose JavaScript is next to it. */
function isPlain(file: string): boolean {
  return /^(src|test|bench|scripts)\/.*\.ts$/.test(file) && !file.includes("/fixtures/");
}

/** Where the JavaScript of a file lies. */
export function asPlain(file: string): string {
  return file.replace(/\.ts$/, ".js");
}
