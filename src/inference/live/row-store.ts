import { randomBytes } from "node:crypto";
import { liveLimits } from "../../contracts/live-limits.js";
import type { ChangedPoint } from "../../contracts/names.js";
import { encodeNpz } from "../../formats/npz-writer.js";
import { encodeSafetensors } from "../../formats/safetensors.js";
import type { CapturedRows } from "../../native/live.js";

/** Description of a capture's rows. */
export interface CapturedPoint {
  /** Default: the block's output. */
  point?: ChangedPoint;
  heads?: readonly number[];
}

/** A stored capture. */
export interface RowCapture extends CapturedRows, CapturedPoint {
  bytes: number;
  /** Unix seconds. */
  created: number;
  model: string;
}

/** Captured activations, in memory only, with a size limit; the oldest are evicted first. */
export class RowStore {
  /** Number of evicted captures. */
  dropped = 0;
  readonly #captures = new Map<string, RowCapture>();
  #bytes = 0;

  constructor(private readonly most: number = liveLimits.captures_bytes) {}

  /** A new id for a request's capture. */
  newId(): string {
    return `cap-${randomBytes(8).toString("hex")}`;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#captures.size;
  }

  add(rows: CapturedRows & CapturedPoint, model: string): void {
    const bytes = rows.layers.reduce((sum, { values }) => sum + values.byteLength, 8 * rows.rows.length);
    this.#captures.set(rows.id, { ...rows, bytes, created: Date.now() / 1000, model });
    this.#bytes += bytes;
    for (const id of this.#captures.keys()) {
      if (this.#bytes <= this.most) break;
      this.remove(id);
      this.dropped++;
    }
  }

  get(id: string): RowCapture | undefined {
    return this.#captures.get(id);
  }

  /** Oldest first. */
  list(): RowCapture[] {
    return [...this.#captures.values()];
  }

  /** Whether there was one. */
  remove(id: string): boolean {
    const found = this.#captures.get(id);
    if (found === undefined) return false;
    this.#captures.delete(id);
    this.#bytes -= found.bytes;
    return true;
  }
}

/** The arrays of a capture's file: `layer_<n>` [rows, width], `rows` and `token_ids` [rows]. */
function arraysOf({ rows, tokens, layers }: RowCapture) {
  const count = rows.length;
  return {
    rows: { shape: [count], data: rows },
    token_ids: { shape: [count], data: tokens },
    ...Object.fromEntries(
      layers.map(({ layer, values }) => [
        `layer_${layer}`,
        { shape: [count, count === 0 ? 0 : values.length / count], data: values },
      ]),
    ),
  };
}

/** Activations that a layer did not compute: the last block's for all prompt tokens but the last. */
function missingRows({ rows, layers }: RowCapture): string {
  const missing = layers.map(({ layer, values }) => {
    const width = values.length / Math.max(1, rows.length);
    const count = Array.from(rows.keys()).filter((row) => Number.isNaN(values[row * width])).length;
    return { layer, rows: count };
  });
  return JSON.stringify(missing.filter(({ rows: count }) => count > 0));
}

export function captureSafetensors(capture: RowCapture): Buffer {
  return encodeSafetensors(arraysOf(capture), {
    tapline: "capture",
    model: capture.model,
    point: capture.point ?? "block_out",
    ...(capture.heads && { heads: capture.heads.join(",") }),
    prompt_tokens: String(capture.promptTokens),
    missing: missingRows(capture),
  });
}

export function captureNpz(capture: RowCapture): Promise<Buffer> {
  const prompt = { shape: [], data: Int32Array.of(capture.promptTokens) };
  return encodeNpz({ ...arraysOf(capture), prompt_tokens: prompt });
}
