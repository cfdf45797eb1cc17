import { InvalidArgumentError } from "commander";
import type { LiveIntervention } from "../contracts/live.js";

/** A saved vector and its strength, relative to the activation's norm. */
export interface Steering {
  vector: string;
  strength: number;
}

/** The argument of --steer, which is repeatable. @throws InvalidArgumentError */
export function steering(text: string, earlier: Steering[] = []): Steering[] {
  const [, vector, amount = ""] = /^(.+?)(?::([^:]*))?$/.exec(text) ?? [];
  const strength = amount.trim() === "" ? Number.NaN : Number(amount);
  if (vector === undefined || !Number.isFinite(strength)) {
    throw new InvalidArgumentError("Write a vector's name and a strength, such as polite:0.2.");
  }
  return [...earlier, { vector, strength }];
}

/** Applies at every layer of the vector, to every token. */
export function steeringEdit({ vector, strength }: Steering): LiveIntervention {
  return { kind: "steer", vector, strength, strength_unit: "row_norm" };
}
