import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { WeightFiles, WeightList } from "../contracts/weights.js";
import { taplineHome } from "../files/home.js";
import { isRunning } from "../files/running.js";
import { npyHeader } from "../formats/npz-writer.js";
import { HttpError } from "../http/index.js";
import { type PlacedWeight, readWeightPlaces } from "../models/gguf-header.js";
import type { ResolvedModel } from "../models/resolve.js";
import { dequantise, NativeError } from "../native/index.js";
import { SerialQueue } from "../native/serial.js";
import { fieldRefusal } from "./check-body.js";

/**
 * The model's weights as .npy files: read from the GGUF, dequantised once, and stored in the cache under the model's
 * fingerprint, so that later servers and other clients map the same files.
 */
export class Weights {
  #places: ReturnType<typeof readWeightPlaces> | undefined;
  readonly #turns = new SerialQueue("weights");

  constructor(
    private readonly resolved: ResolvedModel,
    private readonly model: { readonly fingerprint: string },
    private readonly home?: string,
  ) {}

  async list(): Promise<WeightList> {
    const { metadata, weights } = await this.#read();
    const plain = (value: unknown) => (typeof value === "number" && !Number.isFinite(value) ? null : value);
    return {
      metadata: Object.fromEntries(
        [...metadata].map(([key, value]) => [key, plain(value)]),
      ) as WeightList["metadata"],
      tensors: [...weights].map(([name, { shape, type }]) => ({ name, shape: [...shape].reverse(), type })),
    };
  }

  /** Writes what is missing. @throws HttpError 400 for unknown names, 503 if a file cannot be written */
  async files(names: readonly string[]): Promise<WeightFiles> {
    const { weights } = await this.#read();
    const folder = join(taplineHome(this.home), "cache", "weights", this.model.fingerprint);
    const files: WeightFiles["files"] = [];
    for (const [index, name] of names.entries()) {
      const place = weights.get(name);
      if (place === undefined) {
        throw fieldRefusal(`tensors[${index}]`, `${JSON.stringify(name)} is not a weight of this model.`);
      }
      const path = join(folder, `${encodeURIComponent(name)}.npy`);
      await this.#turns.run(() => this.#write(path, place));
      files.push({ name, path, shape: [...place.shape].reverse() });
    }
    return { files };
  }

  #read(): ReturnType<typeof readWeightPlaces> {
    const { path, weights } = this.resolved;
    this.#places ??= readWeightPlaces(weights.map(({ name }) => join(dirname(path), name))).catch((error) => {
      this.#places = undefined; // a disk that was away may be back
      throw error;
    });
    return this.#places;
  }

  async #write(path: string, { path: from, offset, type, shape }: PlacedWeight): Promise<void> {
    if (existsSync(path)) return;
    const part = `${path}.${process.pid}.part`;
    const [row = 1, ...others] = shape;
    const rows = others.reduce((product, length) => product * length, 1);
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await removeLeftovers(dirname(path));
      await writeFile(part, npyHeader("f4", [...shape].reverse()));
      await dequantise({ from, to: part, offset, type, row, rows });
      await rename(part, path);
    } catch (error) {
      await rm(part, { force: true });
      if (!(error instanceof NativeError) && (error as NodeJS.ErrnoException).code === undefined) throw error;
      throw new HttpError(503, `The weight cannot be stored: ${(error as Error).message}`);
    }
  }
}

/** Deletes the parts that killed processes left. */
async function removeLeftovers(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const [, pid] = /\.(\d+)\.part$/.exec(name) ?? [];
    if (pid !== undefined && !isRunning(Number(pid))) await rm(join(folder, name), { force: true });
  }
}
