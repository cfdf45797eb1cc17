/** tapline's products compile for every level of processors of a release, whatever the machine of the developer has. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { levelList, levelsFor } from "../../../scripts/build/levels.js";
import { root, treeOf } from "../../../scripts/build/paths.js";
import { type CompileCommand, compilation } from "../../verify/compiles/arguments.js";

const run = promisify(execFile);

const commands = () =>
  (JSON.parse(readFileSync(join(treeOf("cpu"), "compile_commands.json"), "utf8")) as CompileCommand[])
    .map((entry) => compilation(entry, root, "/dev/null"))
    .filter((one) => one !== undefined)
    .filter(({ file }) => file.startsWith(join("native", "products")));

for (const level of process.arch === "x64" ? levelsFor("linux", "x64") : []) {
  test(`the products compile for ${level.name}`, async () => {
    const flags = (levelList([level]).split("|")[1] as string).split(",").filter((flag) => flag !== "");
    const all = commands();
    assert.ok(all.length > 8, `${all.length} files`);
    for (const { args } of all) await run("c++", [...args, ...flags, "-fsyntax-only"]);
  });
}

test.run();
