import { readFile } from "node:fs/promises";
import { isBlockPoint, targetPoints, textRows } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";
import { type ExtractionIndex, extractionFormat } from "./folder.js";
import type { RowForm } from "./plan.js";

/** Reads an extraction's index, of all of it or of a part. @throws UserError if it is none */
export async function readIndex(path: string): Promise<ExtractionIndex> {
  const refuse = (why: string) => new UserError(`${path} is not an extraction index: ${why}.`);
  let read: ExtractionIndex;
  try {
    read = JSON.parse(await readFile(path, "utf8")) as ExtractionIndex;
  } catch (error) {
    throw refuse((error as NodeJS.ErrnoException).code ?? "it is not JSON");
  }
  if (read?.format !== extractionFormat) throw refuse(`its format is not "${extractionFormat}"`);
  const source = Object(read.source) as Record<string, unknown>;
  const whole = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
  const sound =
    Array.isArray(source.layers) &&
    source.layers.every(whole) &&
    whole(source.hidden) &&
    (source.hidden as number) > 0 &&
    (textRows as readonly unknown[]).includes(source.rows) &&
    ["f32", "f16", "bf16"].includes(source.dtype as string) &&
    (source.point === undefined || isBlockPoint(source.point)) &&
    (source.target === undefined || (targetPoints as readonly unknown[]).includes(source.target)) &&
    Array.isArray(read.shards) &&
    read.shards.every(({ file, rows }) => typeof file === "string" && !/[/\\]/.test(file) && whole(rows));
  if (!sound) throw refuse("a field is missing or has the wrong type");
  return read;
}

/** The form of an extraction's rows, as its index records it. */
export function formOf({ source }: ExtractionIndex): RowForm {
  const { layers, point, target, hidden, rows, dtype } = source as unknown as RowForm;
  return {
    layers,
    ...(point !== undefined && { point }),
    ...(target !== undefined && { target }),
    ...{ hidden, rows, dtype },
  };
}
