import type { BlockPoint, RowsRead, TargetPoint } from "../../contracts/names.js";
import { planSafetensors, type SafetensorsPlan, type WrittenType } from "../../formats/safetensors.js";

/** Properties of all rows of an extraction. */
export interface RowForm {
  layers: readonly number[];
  /** Point of these blocks; if absent, their output, as in all extractions of earlier versions. */
  point?: BlockPoint;
  /** A second point of these blocks, for transcoders that predict it. */
  target?: TargetPoint;
  hidden: number;
  rows: RowsRead;
  dtype: "f32" | "f16" | "bf16";
}

/** One file of an extraction: whole texts, and the rows of all layers. */
export interface Shard {
  file: string;
  texts: number;
  tokens: number;
  /** Rows per layer. */
  rows: number;
  bytes: number;
  /** File offset of each tensor. */
  offsets: Record<string, number>;
}

export interface Plan {
  texts: number;
  tokens: number;
  rows: number;
  bytes: number;
  /** Number of truncated texts. */
  cut_texts: number;
  shards: Shard[];
}

/** Suffix `-2-of-8` for files of one of several parts; empty for a single part. */
function partName([index, count]: readonly [number, number]): string {
  return count === 1 ? "" : `-${index}-of-${count}`;
}

/** Name of the index file of a part. */
export function indexName(part: readonly [number, number]): string {
  return `index${partName(part)}.json`;
}

/** Name of the table next to an index: `index.parquet`, of part 2 of 8 `index-2-of-8.parquet`. */
export function tableName(index: string): string {
  return index.replace(/\.json$/, ".parquet");
}

/** Whether a file name is an index's, of any part. */
export function isIndexName(name: string): boolean {
  return /^index(-\d+-of-\d+)?\.json$/.test(name);
}

/** Assigns texts to shards in order, keeping only counts. */
export class Planner {
  readonly #shards: Shard[] = [];
  #texts = 0;
  #tokens = 0;
  #cut = 0;

  /** @param most maximum tokens per shard, unless its first text alone has more */
  constructor(
    private readonly form: RowForm,
    private readonly part: readonly [number, number],
    private readonly most: number,
  ) {}

  /** @returns where the text's rows will be */
  add(tokens: number, cut: boolean): { shard: string; row: number; rows: number } {
    if (this.#texts > 0 && this.#tokens + tokens > this.most) this.#close();
    const place =
      this.form.rows === "all" ? { row: this.#tokens, rows: tokens } : { row: this.#texts, rows: 1 };
    this.#texts++;
    this.#tokens += tokens;
    if (cut) this.#cut++;
    return { shard: this.#file, ...place };
  }

  get tokens(): number {
    return this.#shards.reduce((sum, { tokens }) => sum + tokens, this.#tokens);
  }

  finish(): Plan {
    if (this.#texts > 0) this.#close();
    const sum = (of: "texts" | "tokens" | "rows" | "bytes") =>
      this.#shards.reduce((all, shard) => all + shard[of], 0);
    return {
      texts: sum("texts"),
      tokens: sum("tokens"),
      rows: sum("rows"),
      bytes: sum("bytes"),
      cut_texts: this.#cut,
      shards: this.#shards,
    };
  }

  /** Name of the shard that is being filled. */
  get #file(): string {
    return `shard${partName(this.part)}-${String(this.#shards.length).padStart(5, "0")}.safetensors`;
  }

  #close(): void {
    const [texts, tokens] = [this.#texts, this.#tokens];
    const rows = this.form.rows === "all" ? tokens : texts;
    const { bytes, starts } = shardLayout({ texts, tokens, rows }, this.form);
    this.#shards.push({
      file: this.#file,
      ...{ texts, tokens, rows, bytes, offsets: Object.fromEntries(starts) },
    });
    this.#texts = 0;
    this.#tokens = 0;
  }
}

const types: Record<RowForm["dtype"], WrittenType> = { f32: "F32", f16: "F16", bf16: "BF16" };

/** Bytes per number. */
export function widthOf(dtype: RowForm["dtype"]): number {
  return dtype === "f32" ? 4 : 2;
}

/** Names of a layer's rows in a shard, and of their targets. */
export const rowsName = (layer: number) => `layer_${layer}`;
export const targetsName = (layer: number) => `target_${layer}`;

/** The names of all matrices in a shard. */
export function matrixNames({ layers, target }: Pick<RowForm, "layers" | "target">): string[] {
  return [...layers.map(rowsName), ...(target === undefined ? [] : layers.map(targetsName))];
}

/**
 * The layout of a shard: `text_indices` [texts] and `text_starts` [texts + 1] (into the tokens), `token_ids`
 * [tokens], and `layer_<n>` [rows, hidden], also `target_<n>` if there are targets.
 */
export function shardLayout(
  { texts, tokens, rows }: Pick<Shard, "texts" | "tokens" | "rows">,
  form: RowForm,
): SafetensorsPlan {
  const { hidden, dtype, rows: kind } = form;
  const whole = (length: number) => ({ dtype: "I32" as const, shape: [length] });
  return planSafetensors(
    {
      text_indices: whole(texts),
      text_starts: whole(texts + 1),
      token_ids: whole(tokens),
      ...Object.fromEntries(
        matrixNames(form).map((name) => [name, { dtype: types[dtype], shape: [rows, hidden] }]),
      ),
    },
    { format: "pt", rows: kind },
  );
}
