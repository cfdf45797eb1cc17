import { InvalidInput } from "./invalid-input.js";
import type { BlockPoint, TargetPoint } from "./names.js";

/** The MLP's output is predicted from its input. @throws InvalidInput for another point */
export function checkTarget(target: TargetPoint | undefined, point: BlockPoint | undefined): void {
  if (target === undefined || point === "ffn_in") return;
  throw new InvalidInput("target", `${target} requires the point ffn_in, got ${point ?? "block_out"}.`);
}
