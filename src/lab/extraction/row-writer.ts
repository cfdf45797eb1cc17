import { UserError } from "../../contracts/user-error.js";
import { bytesOf } from "../../formats/float.js";
import { type NarrowType, narrow, release } from "../../native/index.js";
import type { ArtifactFile } from "../artifacts.js";
import { type RowForm, rowsName, type Shard, shardLayout, targetsName, widthOf } from "./plan.js";

/** Writes a shard as its rows arrive. Its contents are planned, so every byte's offset is known in advance. */
export class RowWriter {
  readonly #file: ArtifactFile;
  readonly #form: RowForm;
  readonly #layout: ReturnType<typeof shardLayout>;
  readonly #indices: Int32Array;
  readonly #starts: Int32Array;
  readonly #tokens: Int32Array;
  #texts = 0;
  #rows = 0;

  constructor(file: ArtifactFile, shard: Shard, form: RowForm) {
    this.#file = file;
    this.#form = form;
    this.#layout = shardLayout(shard, form);
    this.#indices = new Int32Array(shard.texts);
    this.#starts = new Int32Array(shard.texts + 1);
    this.#tokens = new Int32Array(shard.tokens);
  }

  /** @param rows [rows, hidden] of each layer and its target, released once written */
  async add(
    texts: ReadonlyArray<{ index: number; tokens: Int32Array }>,
    rows: ReadonlyMap<number, { data: Float32Array; target?: { data: Float32Array } }>,
  ): Promise<void> {
    for (const { index, tokens } of texts) {
      const start = this.#starts[this.#texts] as number;
      this.#indices[this.#texts++] = index;
      this.#tokens.set(tokens, start);
      this.#starts[this.#texts] = start + tokens.length;
    }
    let count = 0;
    for (const [layer, { data, target }] of rows) {
      count = data.length / this.#form.hidden;
      await this.#write(rowsName(layer), layer, data);
      if (target !== undefined) await this.#write(targetsName(layer), layer, target.data);
    }
    this.#rows += count;
  }

  async #write(name: string, layer: number, data: Float32Array): Promise<void> {
    const { hidden, dtype } = this.#form;
    const numbers = dtype === "f32" ? data : await narrowed(data, dtype, layer);
    await this.#file.write(bytesOf(numbers), this.#start(name) + this.#rows * hidden * widthOf(dtype));
    release(data);
  }

  /** Writes the head and the tokens. */
  async finish(): Promise<void> {
    await this.#file.write(this.#layout.head, 0);
    await this.#file.write(bytesOf(this.#indices), this.#start("text_indices"));
    await this.#file.write(bytesOf(this.#starts), this.#start("text_starts"));
    await this.#file.write(bytesOf(this.#tokens), this.#start("token_ids"));
  }

  #start(name: string): number {
    return this.#layout.starts.get(name) as number;
  }
}

async function narrowed(values: Float32Array, type: NarrowType, layer: number): Promise<Uint16Array> {
  return narrow(values, type).catch((error: Error) => {
    throw new UserError(`Layer ${layer}: ${error.message} Use ${type === "f16" ? "bf16 or f32" : "f32"}.`);
  });
}
