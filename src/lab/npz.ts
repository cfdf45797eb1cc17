import { type NamedArrays, writeArrays } from "../formats/npz-writer.js";
import type { Artifacts } from "./artifacts.js";

/** Makes an .npz of arrays that are at hand. */
export async function writeNpz(artifacts: Artifacts, name: string, arrays: NamedArrays): Promise<void> {
  await artifacts.create(name, (file) => writeArrays(file, arrays));
}
