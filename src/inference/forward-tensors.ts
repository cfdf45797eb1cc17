import type { ForwardRequest } from "../contracts/forward.js";
import type { NamedPoint } from "../contracts/hook-names.js";
import { planSafetensors, type WrittenType } from "../formats/safetensors.js";
import type { ServedForward } from "../native/engine.js";

/** A capture, and its name in the result. */
export type NamedCapture = { name: string; layer: number; point: NamedPoint["point"] };

/** A safetensors file in parts. */
export interface ForwardTensors {
  head: Buffer;
  parts: Buffer[];
  bytes: number;
}

type Numbers = Float32Array | Uint16Array | Int32Array;

/**
 * The result as a safetensors file: `tokens`, `lengths`, the captures by name, and `logits`. If all sequences have as many rows,
 * a capture is [sequences, rows, ...], else [rows of all sequences, ...]; attention is [sequences, heads, tokens, tokens], or a
 * tensor per sequence, `NAME/0`. Heads' outputs are [..., heads, head size].
 */
export function tensorsOf(
  { sequences, positions, logits, precision }: ForwardRequest,
  captures: readonly NamedCapture[],
  found: ServedForward,
  model: string,
): ForwardTensors {
  const dtype: WrittenType = precision === "f16" ? "F16" : "F32";
  const planned: Record<string, { dtype: WrittenType; shape: readonly number[] }> = {};
  const parts: Numbers[] = [];
  const lengths = Int32Array.from(found.tokens, (tokens) => tokens.length);
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const count = sequences.length;
  const even = lengths.every((length) => length === lengths[0]);
  /** The leading dimensions of `rows` rows per sequence; undefined: every token. */
  const leading = (rows: number | undefined) =>
    rows !== undefined ? [count, rows] : even ? [count, total / count] : [total];
  const add = (name: string, shape: readonly number[], values: Numbers, type: WrittenType) => {
    planned[name] = { dtype: type, shape };
    parts.push(values);
  };
  const tokens = new Int32Array(total);
  let placed = 0;
  for (const each of found.tokens) {
    tokens.set(each, placed);
    placed += each.length;
  }
  add("tokens", leading(undefined), tokens, "I32");
  add("lengths", [count], lengths, "I32");
  for (const [index, { name, point }] of captures.entries()) {
    const { width, heads, values } = found.captures[index] as ServedForward["captures"][number];
    if (point !== "attention") {
      const row = heads > 0 ? [heads, width / heads] : [width];
      add(name, [...leading(positions?.length), ...row], values, dtype);
    } else if (even) {
      const length = lengths[0] as number;
      add(name, [count, heads, length, length], values, dtype);
    } else {
      let start = 0;
      for (const [sequence, length] of lengths.entries()) {
        const end = start + heads * length * length;
        add(`${name}/${sequence}`, [heads, length, length], values.subarray(start, end), dtype);
        start = end;
      }
    }
  }
  if (found.logits !== undefined) {
    const rows = logits === "all" ? undefined : logits === "last" ? 1 : (logits as number[]).length;
    const shape = leading(rows);
    const vocabulary = found.logits.length / shape.reduce((product, length) => product * length, 1);
    add("logits", [...shape, vocabulary], found.logits, dtype);
  }
  const { head, bytes } = planSafetensors(planned, {
    model,
    effects: JSON.stringify(
      found.effects.map((effects) =>
        effects.map(({ rows, rowLength, changeLength }) => ({
          rows,
          row_norm: rowLength,
          change_norm: changeLength,
        })),
      ),
    ),
    waited_ms: found.waitedMs.toFixed(3),
    forward_ms: found.forwardMs.toFixed(3),
  });
  const buffers = parts.map((part) => Buffer.from(part.buffer, part.byteOffset, part.byteLength));
  return { head, parts: buffers, bytes };
}
