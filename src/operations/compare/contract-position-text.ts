import type { CompareConfig } from "./contract.js";

/** The tokens that an intervention edits, in words. For a swap, `last` is the last token of the prompt. */
export function positionText(positions: CompareConfig["positions"] = "last", intervention?: string): string {
  if (positions === "last") return intervention === "swap" ? "the prompt's last token" : "last token";
  if (positions === "all") return "all tokens";
  if (positions === "prompt") return "the prompt's tokens";
  if (positions === "generated") return "generated tokens";
  const ranges = (positions as number[][]).map(([first, last]) =>
    first === last ? String(first) : `${first} to ${last}`,
  );
  return `${positions.length === 1 && positions[0]?.[0] === positions[0]?.[1] ? "token" : "tokens"} ${ranges.join(", ")}`;
}
