import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { command } from "./in-process.js";

// Its blocks are pasted by `npm run verify:walk`.
const page = readFileSync(new URL("../../docs/command-line.md", import.meta.url), "utf8");

test("every command of the program is on the page", async () => {
  const { stdout } = await command(["--help"]);
  const names = [...stdout.matchAll(/^ {2}([a-z]+)(?= |$)/gm)].map(([, name]) => name as string);
  assert.ok(names.length > 20);
  for (const name of names.filter((word) => word !== "help")) {
    assert.match(page, new RegExp(`\`(tapline )?${name}[ \`]`), name);
  }
});

test("every command has a description, and help with an example", async () => {
  const { stdout } = await command(["completion", "bash"]);
  const paths = [...stdout.matchAll(/^ {4}'([a-z ]*)'\)$/gm)].map(([, path]) => path as string);
  for (const path of paths.filter((words) => !["", "study", "mcp"].includes(words))) {
    const help = await command([...path.split(" "), "--help"]);
    assert.match(help.stdout, /^Usage: tapline .*\n\n\S/, path);
    assert.match(help.stdout, /Examples:\n {2}\S/, path);
    assert.equal(
      help.stdout.split("\n").filter((line) => line.length > 80),
      [],
      path,
    );
  }
});

test("each experiment's help names its default blocks", async () => {
  for (const [name, said] of [
    ["inspect", "up to 8 blocks, such as 0,3,7 or 0-7 (default: evenly spread)"],
    ["probe", "up to 8 blocks, such as 0,3,7 or 0-7 (default: 0)"],
    ["extract", "up to 8 blocks, such as 0,3,7 or 0-7 (default: 0)"],
    ["compare", "the block to change (default: 0)"],
    ["patch", "blocks to patch, such as 0,3,7 or 0-7 (default: all)"],
  ] as const) {
    const { stdout } = await command([name, "--help"]);
    const [, layers] = /--layers <list>\s+([\s\S]*?)\n {2}--/.exec(stdout) ?? [];
    assert.is(layers?.replace(/\s+/g, " "), said, name);
  }
});

test.run();
