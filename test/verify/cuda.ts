/**
 * Whether a package with CUDA can be made and installed on a machine without a GPU, a driver and a toolkit: `npm run
 * verify:cuda`, on x86-64 Linux. It is compiled for one architecture (half an hour on two cores) and installed next to the
 * package for processors, which must then be used. Nothing runs on a GPU.
 *   --architecture NAME   in CMake's words (default: 90-real)
 *   --out FOLDER          keeps the packages
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { onInterrupt } from "../../scripts/build/interrupt.js";
import { needsOf } from "../../scripts/build/needs.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const { values } = parseArgs({
  options: { architecture: { type: "string", default: "90-real" }, out: { type: "string" } },
});
const work = mkdtempSync(join(tmpdir(), "tapline-cuda-"));
const clean = () => rmSync(work, { recursive: true, force: true });
const stop = onInterrupt(clean);
let [passed, failed] = [0, 0];

function check(name: string, holds: boolean, shown: string): void {
  console.log(`${holds ? "holds" : "FAILED"}  ${name}: ${shown.trim()}`);
  if (holds) passed++;
  else failed++;
}

/** Runs the installed program, without settings of this shell that choose an addon. */
function tapline(project: string, args: string[], more: NodeJS.ProcessEnv = {}): string {
  const { TAPLINE_ADDON: _, LD_LIBRARY_PATH: __, ...env } = process.env;
  const program = join(project, "node_modules", ".bin", "tapline");
  const { stdout, stderr } = spawnSync(program, args, { encoding: "utf8", env: { ...env, ...more } });
  return `${stdout}${stderr}`.replace(/\s+/g, " ");
}

try {
  const out = resolve(values.out ?? join(work, "out"));
  const options = [
    "--levels",
    "x86-64-v3",
    "--cuda",
    "--cuda-architectures",
    values.architecture,
    "--out",
    out,
  ];
  execFileSync("npm", ["run", "--silent", "release", "--", ...options], { cwd: root, stdio: "inherit" });
  const packed = readdirSync(out).filter((name) => name.endsWith(".tgz"));
  const cuda = packed.find((name) => name.includes("-cuda-")) ?? "";
  check("the package is packed", cuda !== "", `${cuda}, ${statSync(join(out, cuda)).size} bytes`);

  const project = join(work, "project");
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), "{}");
  const { TAPLINE_CMAKE_OPTIONS: _, TAPLINE_BACKEND: __, ...env } = process.env;
  execFileSync(
    "npm",
    ["install", "--silent", "--no-audit", "--no-fund", ...packed.map((name) => join(out, name))],
    {
      cwd: project,
      env,
      stdio: "inherit",
    },
  );
  const addon = join(project, "node_modules", "tapline-linux-x64-cuda", "tapline.node");
  const { libraries, folders } = needsOf(addon);
  check("it searches no folder of this machine", folders.length === 0, folders.join(", "));
  check(
    "the driver is the first library that it needs",
    libraries[0] === "libcuda.so.1",
    libraries.join(", "),
  );
  check("the addon's size", statSync(addon).size > 20e6, `${(statSync(addon).size / 1e6).toFixed(1)} MB`);

  const refused = tapline(project, ["inspect", "Hello", "--no-out"], { TAPLINE_ADDON: addon });
  check(
    "without a driver one sentence says what helps",
    /this machine has no NVIDIA driver: install the driver, or build for the CPU with/.test(refused),
    refused,
  );
  const doctor = tapline(project, ["doctor"]);
  check("the addon for processors is used", /prebuilt by tapline-linux-x64 /.test(doctor), doctor);
  check("doctor says why the one with CUDA is not", /libcuda\.so\.1/.test(doctor), doctor);
  const inspect = tapline(project, ["inspect", "The capital of France is", "--no-out"]);
  check("it answers", /“·Paris” is on top/.test(inspect), inspect.slice(0, 200));
} finally {
  clean(); // a signal while it deletes is still ours
  stop();
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
