import type { CompareConfig } from "./submission.js";

/** Which tokens' rows an intervention changes, in words. */
export function positionText(positions: CompareConfig["positions"] = "last"): string {
  if (positions === "last") return "last token";
  if (positions === "all") return "all tokens";
  if (positions === "prompt") return "the prompt's tokens";
  if (positions === "generated") return "generated tokens";
  const ranges = (positions as number[][]).map(([first, last]) =>
    first === last ? String(first) : `${first} to ${last}`,
  );
  return `${positions.length === 1 && positions[0]?.[0] === positions[0]?.[1] ? "token" : "tokens"} ${ranges.join(", ")}`;
}
