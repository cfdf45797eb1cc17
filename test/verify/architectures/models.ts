import { execFile } from "node:child_process";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

/** Where those of {@link writeModels}' models lie whose routers have more experts than they take. */
export const expertsFolder = "experts";

const run = promisify(execFile);

/** Weights from the same seed in every run, so that a figure can be looked at again. */
const seed = "20";

const names = async (folder: string) =>
  (await readdir(folder))
    .filter((file) => file.endsWith(".gguf"))
    .map((file) => file.slice(0, -".gguf".length))
    .sort();

/** Writes llama.cpp's random test models, unless they are there, and returns their names without ending. */
export async function writeModels(tool: string, folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  if ((await names(folder)).length === 0) {
    await run(tool, ["-s", seed, "-o", folder], { maxBuffer: 1 << 26 });
  }
  return names(folder);
}

/**
 * Writes beside the models with experts the same with more experts than a token takes, where the architecture's metadata
 * allows any number.
 * @param tool test-llama-archs-experts
 */
export async function widenRouters(tool: string, folder: string, into: string): Promise<void> {
  const out = join(folder, into);
  if (
    await readdir(out).then(
      ({ length }) => length > 0,
      () => false,
    )
  )
    return;
  await mkdir(out, { recursive: true });
  for (const name of (await names(folder)).filter((each) => each.endsWith("-moe"))) {
    // Some have experts by a special rule.
    await run(tool, ["-s", seed, "-a", name.replace(/-moe$/, ""), "-o", out], { maxBuffer: 1 << 26 }).catch(
      () => {},
    );
  }
}

/**
 * Replaces each model of two blocks by a model of five, where the architecture's metadata allows any number.
 * @param tool test-llama-archs-deep
 * @returns how many are five blocks deep
 */
export async function deepen(tool: string, folder: string): Promise<number> {
  const deep = join(folder, "deep");
  let count = 0;
  for (const architecture of new Set((await names(folder)).map((name) => name.replace(/-[^-]*$/, "")))) {
    await rm(deep, { recursive: true, force: true });
    await mkdir(deep);
    const done = await run(tool, ["-s", seed, "-a", architecture, "-o", deep], { maxBuffer: 1 << 26 }).then(
      () => true,
      () => false, // some lists of numbers, one a block, are written for two
    );
    if (!done) continue;
    for (const name of await names(deep)) {
      await rename(join(deep, `${name}.gguf`), join(folder, `${name}.gguf`));
      count++;
    }
  }
  await rm(deep, { recursive: true, force: true });
  return count;
}
