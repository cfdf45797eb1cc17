import { UserError } from "../../contracts/user-error.js";
import { fieldRefusal, refusal } from "../check-body.js";

/** @throws HttpError 400 that names the field, if the model has no such layer */
export function checkLayer(path: string, layer: number, nLayer: number): void {
  if (layer < nLayer) return;
  throw fieldRefusal(path, `layer ${layer} does not exist; the model has layers 0 to ${nLayer - 1}.`);
}

/** @throws HttpError 400 if heads are named at a point without heads */
export function checkHeads(
  path: string,
  { heads, point = "block_out" }: { heads?: unknown; point?: string },
): void {
  if (heads === undefined || point === "head_out") return;
  throw refusal(`${path}.heads`, `${path}.heads are only possible at head_out, got ${point}.`);
}

/** Turns the library's errors into refusals of the field. */
export async function inField<T>(path: string, looked: Promise<T>): Promise<T> {
  try {
    return await looked;
  } catch (error) {
    throw error instanceof UserError ? fieldRefusal(path, `${error.message}`) : error;
  }
}
