import { type NamedArrays, writeArrays } from "../formats/npz-writer.js";
import type { Artifacts } from "./artifacts.js";

/** Writes arrays in memory as an .npz artifact. */
export async function writeNpz(artifacts: Artifacts, name: string, arrays: NamedArrays): Promise<void> {
  await artifacts.create(name, (file) => writeArrays(file, arrays));
}
