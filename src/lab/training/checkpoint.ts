import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "../../contracts/user-error.js";
import { removeTorn, syncFolder, writeDurably } from "../../files/durable.js";
import { differenceOf } from "../../formats/difference.js";
import { bytesOf } from "../../formats/float.js";
import { FormatError } from "../../formats/format-error.js";
import { safetensorsHead } from "../../formats/safetensors.js";
import { openTensors } from "../../library/tensor-files.js";
import { bytesText } from "../../text/words.js";

/** Losses and evaluations of a training so far. */
export interface History {
  losses: Array<{ step: number; loss: number }>;
  evaluations: Array<{
    step: number;
    explained_variance: number | null;
    mean_active: number;
    dead_features: number;
  }>;
}

/** Everything that determines a training's numbers. */
export type TrainingIdentity = Readonly<Record<string, unknown>>;

/** An unfinished training in one file: weights, moments and history. */
export class Checkpoint {
  readonly #folder: string;
  readonly #path: string;
  readonly #identity: TrainingIdentity;

  constructor(folder: string, layer: number, identity: TrainingIdentity) {
    this.#folder = folder;
    this.#path = join(folder, `checkpoint-layer-${layer}.safetensors`);
    this.#identity = identity;
  }

  isThere(): boolean {
    return existsSync(this.#path);
  }

  async write(state: Readonly<Record<string, Float32Array>>, history: History): Promise<void> {
    const tensors = Object.fromEntries(
      Object.entries(state).map(([name, data]) => [name, { shape: [data.length], data }]),
    );
    const head = safetensorsHead(tensors, {
      training: JSON.stringify(this.#identity),
      history: JSON.stringify(history),
    });
    const pieces = Object.values(state).map(bytesOf);
    try {
      await writeDurably(this.#path, [head, ...pieces]);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === undefined) throw error;
      const bytes = pieces.reduce((sum, { byteLength }) => sum + byteLength, head.byteLength);
      throw new UserError(
        `The checkpoint ${this.#path} (${bytesText(bytes)}) cannot be written (${code}); the previous one is unchanged.`,
      );
    }
  }

  /** Removes partial files of killed processes. */
  removeTorn(): Promise<void> {
    return removeTorn(this.#path);
  }

  /**
   * The checkpoint of the same training, if any. @throws UserError if it belongs to a different training, or is
   * damaged
   */
  async read(): Promise<{ state: Record<string, Float32Array>; history: History } | undefined> {
    try {
      const file = await openTensors(this.#path);
      const other = differenceOf(JSON.parse(file.metadata.training ?? "null"), this.#identity);
      if (other !== undefined) {
        throw new UserError(
          `${this.#path} belongs to a different training: ${other}. Choose another folder, or delete the file.`,
        );
      }
      const state: Record<string, Float32Array> = {};
      for (const name of file.shapes.keys()) state[name] = await file.read(name);
      return { state, history: JSON.parse(file.metadata.history ?? "") as History };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      if (error instanceof FormatError || error instanceof SyntaxError) {
        throw new UserError(`${this.#path} is damaged; delete it to start the training from scratch.`);
      }
      throw error;
    }
  }

  async remove(): Promise<void> {
    await rm(this.#path, { force: true });
    await syncFolder(this.#folder);
  }
}
