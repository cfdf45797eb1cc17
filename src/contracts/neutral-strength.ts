import type { CompareConfig } from "../operations/contracts.js";

/** The strength at which an intervention changes nothing. */
export function neutralStrength(intervention: CompareConfig["intervention"]): 0 | 1 {
  return intervention === "scale" ? 1 : 0;
}
