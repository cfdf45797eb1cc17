import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "../../contracts/user-error.js";
import { removeTorn, syncFolder, writeDurably } from "../../files/durable.js";
import { bytesOf } from "../../formats/float.js";
import { FormatError } from "../../formats/format-error.js";
import { safetensorsHead } from "../../formats/safetensors.js";
import { openTensors } from "../../library/tensor-files.js";
import { bytesText } from "../../text/words.js";
import { differenceOf } from "../difference.js";

/** What a training has told so far. */
export interface History {
  losses: Array<{ step: number; loss: number }>;
  evaluations: Array<{
    step: number;
    explained_variance: number | null;
    mean_active: number;
    dead_features: number;
  }>;
}

/** Everything that decides a training's numbers. */
export type TrainingIdentity = Readonly<Record<string, unknown>>;

/** A training that was not finished, in one file: its weights and moments, and what it has told. */
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
        `The training cannot be kept in ${this.#path} (${code}), which takes ${bytesText(bytes)}; what was kept before is as it was.`,
      );
    }
  }

  /** Removes what processes that were killed left of writing it. */
  removeTorn(): Promise<void> {
    return removeTorn(this.#path);
  }

  /**
   * What an earlier process left of the same training; nothing where there is none.
   * @throws UserError where it is another training's, or damaged
   */
  async read(): Promise<{ state: Record<string, Float32Array>; history: History } | undefined> {
    try {
      const file = await openTensors(this.#path);
      const other = differenceOf(JSON.parse(file.metadata.training ?? "null"), this.#identity);
      if (other !== undefined) {
        throw new UserError(
          `${this.#path} is of another training: ${other}. Choose another folder, or remove the file.`,
        );
      }
      const state: Record<string, Float32Array> = {};
      for (const name of file.shapes.keys()) state[name] = await file.read(name);
      return { state, history: JSON.parse(file.metadata.history ?? "") as History };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      if (error instanceof FormatError || error instanceof SyntaxError) {
        throw new UserError(`${this.#path} is damaged; without it, training begins anew.`);
      }
      throw error;
    }
  }

  async remove(): Promise<void> {
    await rm(this.#path, { force: true });
    await syncFolder(this.#folder);
  }
}
