import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A block that a reader pastes: `sh` into a shell, where `fails` says that it shall fail, the others into a program. */
export type Language = "sh" | "sh fails" | "js" | "ts" | "python";

export interface Block {
  language: Language;
  text: string;
  /** The position of its fence in the page. */
  line: number;
}

const languages: Readonly<Record<string, Language>> = {
  sh: "sh",
  bash: "sh",
  "sh fails": "sh fails",
  js: "js",
  ts: "ts",
  py: "python",
  python: "python",
};
/** Not pasted: bodies and files, and drawings. */
const data = new Set(["json", "text"]);

/** The files of a clone: committed ones, and those about to be. */
export function filesOf(root: string): string[] {
  const listed = execFileSync("git", ["ls-files", "-z", "-co", "--exclude-standard"], { cwd: root });
  return listed.toString().split("\0").filter(Boolean);
}

/** The pages that tell people what to do, README first. */
export function pagesOf(files: readonly string[]): string[] {
  const told = (name: string) => /^(docs|models|recipes|clients)\/.*\.md$/.test(name) || name === "README.md";
  return files.filter(told).sort((a, b) => Number(b === "README.md") - Number(a === "README.md"));
}

/**
 * The blocks of a page, in order.
 * @throws where a fence names no language: nobody could say whether it is to be pasted
 */
export function blocksOf(root: string, page: string): Block[] {
  const blocks: Block[] = [];
  let open: { language: string; lines: string[]; line: number } | undefined;
  for (const [index, line] of readFileSync(join(root, page), "utf8").split("\n").entries()) {
    const fence = /^\s*```(.*)$/.exec(line);
    if (fence === null) open?.lines.push(line);
    else if (open === undefined) open = { language: (fence[1] as string).trim(), lines: [], line: index + 1 };
    else {
      const { language, lines } = open;
      const known = languages[language];
      if (known !== undefined) blocks.push({ language: known, text: lines.join("\n"), line: open.line });
      else if (!data.has(language)) {
        throw new Error(
          `${page}:${open.line}: a block in ${language || "no language"}; data is json or text.`,
        );
      }
      open = undefined;
    }
  }
  return blocks;
}
