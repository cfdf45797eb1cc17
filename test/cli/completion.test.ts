import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { scripts } from "../../src/cli/commands/completion-scripts.js";
import { command } from "./in-process.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-completion-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

async function script(shell: string): Promise<string> {
  const { code, stdout } = await command(["completion", shell]);
  assert.is(code, 0);
  const path = join(folder, `tapline.${shell}`);
  writeFileSync(path, stdout);
  return path;
}

const has = (shell: string) => spawnSync(shell, ["-c", "exit 0"]).status === 0;

if (has("bash")) {
  test("bash completes commands, flags and their values", async () => {
    const path = await script("bash");
    const offers = (...words: string[]) => {
      const run = spawnSync(
        "bash",
        [
          "-c",
          `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tapline; printf '%s\\n' "\${COMPREPLY[@]}"`,
          "-",
          path,
          "tapline",
          ...words,
        ],
        { encoding: "utf8" },
      );
      assert.is(run.stderr, "");
      return run.stdout.split("\n").filter((word) => word !== "");
    };
    assert.equal(offers("insp"), ["inspect"]);
    assert.ok(offers("").length > 20);
    assert.equal(offers("compare", "--inter"), ["--intervention"]);
    assert.equal(offers("compare", "--intervention", ""), [
      "scale",
      "ablate",
      "patch",
      "steer",
      "project_out",
      "clamp",
      "swap",
    ]);
    assert.equal(offers("completion", ""), ["bash", "zsh", "fish"]);
    assert.equal(offers("studies", "back"), ["backup"]);
    assert.equal(offers("studies", "backup", "--con"), ["--config"]);
    assert.equal(offers("probe", "--examples", folder), [folder]);
  });
}

for (const [shell, flag] of [
  ["zsh", "-n"],
  ["fish", "-n"],
] as const) {
  test(`${shell}: every command and flag is in the script, which its shell accepts`, async () => {
    const path = await script(shell);
    const { stdout } = await command(["completion", shell]);
    for (const word of ["inspect", "detach", "max-input-tokens", "bogus"]) {
      assert.is(stdout.includes(word), word !== "bogus", word);
    }
    if (!has(shell)) return;
    const { status, stderr } = spawnSync(shell, [flag, path], { encoding: "utf8" });
    assert.is(status, 0, stderr);
  });
}

if (has("fish")) {
  test("fish offers them", async () => {
    const path = await script("fish");
    const { stdout } = spawnSync(
      "fish",
      ["-c", `source ${path}; complete -C "tapline compare --intervention "`],
      {
        encoding: "utf8",
      },
    );
    assert.equal(
      stdout.split("\n").flatMap((line) => line.split("\t")[0] || []),
      ["ablate", "patch", "scale", "steer"],
    );
  });
}

test("fish completion lists the words that follow each word", () => {
  const option = (flags: string[], takesValue = false, choices: string[] = []) => ({
    ...{ flags, description: "It's one", takesValue, choices },
  });
  const tree = [
    {
      path: [],
      subcommands: [
        { name: "a", description: "A" },
        { name: "b", description: "B" },
      ],
      options: [],
      words: [],
    },
    {
      path: ["a"],
      subcommands: [{ name: "c", description: "C" }],
      options: [option(["-x", "--long"])],
      words: [],
    },
    { path: ["a", "c"], subcommands: [], options: [option(["--pick"], true, ["one", "two"])], words: ["w"] },
  ];
  const lines = scripts.fish(tree).split("\n");
  const condition = (line: string) => /-n '([^']*)'/.exec(line)?.[1];
  const of = (word: string) => lines.filter((line) => line.includes(word)).map(condition);
  assert.equal(of(" -a 'a'"), ["not __fish_seen_subcommand_from a b"], scripts.fish(tree));
  assert.equal(of(" -s x -l long "), [
    "__fish_seen_subcommand_from a; and not __fish_seen_subcommand_from c",
  ]);
  assert.equal(of(" -l pick -x "), ["__fish_seen_subcommand_from a; and __fish_seen_subcommand_from c"]);
});

test("the commands that there are", async () => {
  const { stdout } = await command(["--help"]);
  const names = [...stdout.matchAll(/^ {2}([a-z]+)(?: \[| <| {2}|$)/gm)].map(([, name]) => name);
  assert.equal(names, [
    ...[
      "workbench",
      "serve",
      "lab",
      "router",
      "studies",
      "mcp",
      "ready",
      "demo",
      "inspect",
      "compare",
      "probe",
    ],
    ...[
      "features",
      "patch",
      "sae",
      "extract",
      "drift",
      "explain",
      "graph",
      "quants",
      "jobs",
      "job",
      "cancel",
    ],
    ...["merge", "rm", "report"],
    ...[
      "reproduce",
      "study",
      "check",
      "chat",
      "capture",
      "executions",
      "stats",
      "vector",
      "profile",
      "card",
      "dictionary",
      "lens",
      "pull",
    ],
    ...["models", "doctor", "verify", "completion", "help"],
  ]);
});

test("a shell that is not known is a usage error", async () => {
  const { code, stderr } = await command(["completion", "tcsh"]);
  assert.is(code, 2);
  assert.match(stderr, /Allowed choices are bash, zsh, fish/);
});

test.run();
