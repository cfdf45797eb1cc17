/** A session as a notebook: valid, with nothing of a prompt's text as Markdown, and code that Python parses. */
import { execFileSync } from "node:child_process";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { notebookOf } from "../../src/workbench/page/notebook.js";

const jobs = [
  {
    ...{ id: "0123456789abcdef0123456789abcdef", title: "<b>bold</b> [x](y)", note: "a *note*" },
    config: { operation: "inspect", model: "demo", prompt: 'It\'s "quoted"\n', layers: [0], measures: true },
    summary: ["“·Paris” is on top."],
  },
];

test("a notebook has a cell about each job and one that repeats it", () => {
  const book = JSON.parse(notebookOf("Session", "http://127.0.0.1:8980", jobs));
  assert.equal([book.nbformat, book.nbformat_minor, book.metadata.kernelspec.name], [4, 5, "python3"]);
  const cells = book.cells as { cell_type: string; id: string; source: string[] }[];
  assert.equal(
    cells.map(({ cell_type, id }) => [cell_type, id]),
    [
      ["markdown", "head"],
      ["code", "setup"],
      ["markdown", "about-01234567"],
      ["code", "run-01234567"],
    ],
  );
  const about = cells[2]?.source.join("") ?? "";
  assert.match(
    about,
    /^## \\<b\\>bold\\<\/b\\> \\\[x\\\]\\\(y\\\)\n\na \\\*note\\\*\n\n“·Paris” is on top\.\n\n/,
  );
  const code = cells.filter(({ cell_type }) => cell_type === "code").map(({ source }) => source.join(""));
  assert.match(
    code[1] ?? "",
    /^job_01234567 = lab\.submit\("inspect", "demo", \*\*\{"prompt": "It's \\"quoted\\"\\n", /,
  );
  const check = "import ast, sys; ast.parse(sys.stdin.read())";
  execFileSync("python3", ["-c", check], { input: code.join("\n") });
});

test.run();
