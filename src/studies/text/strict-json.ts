import { studyLimits } from "../../contracts/studies/index.js";
import { ApiError } from "../api-error.js";

/**
 * Reads JSON from bytes, and refuses what lenient readers let through because two readers could take it for two
 * different things: invalid UTF-8, a byte order mark, names that occur twice in an object, numbers beyond a
 * double's range. Nesting is at most 32 deep. `\u0000` and unpaired surrogate escapes are ordinary characters.
 * @throws ApiError with the code of the fault and a JSON pointer
 */
export function parseStrictJson(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ApiError("invalid_utf8", "The body is not valid UTF-8.", { field: "" });
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const sentence =
      text.trim() === "" ? "The body is empty; send a JSON object." : "The body is not valid JSON.";
    throw new ApiError("invalid_json", sentence, { field: "" });
  }
  refuseAmbiguity(text);
  return value;
}

interface Level {
  /** Names met so far; null in an array. */
  names: Set<string> | null;
  /** The name or index that comes next in the pointer. */
  at: string | number;
}

// The text is known to be valid JSON, so a token's first character tells what it is.
function refuseAmbiguity(text: string): void {
  const levels: Level[] = [];
  const pointer = () =>
    levels.map(({ at }) => `/${String(at).replace(/~/g, "~0").replace(/\//g, "~1")}`).join("");
  let expectName = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index] as string;
    const level = levels.at(-1);
    switch (character) {
      case "{":
      case "[":
        if (levels.length === studyLimits.json_depth) {
          throw new ApiError("too_deep", `The body nests deeper than ${studyLimits.json_depth} levels.`, {
            field: pointer(),
          });
        }
        levels.push(character === "{" ? { names: new Set(), at: "" } : { names: null, at: 0 });
        expectName = character === "{";
        break;
      case "}":
      case "]":
        levels.pop();
        break;
      case ",":
        if (level?.names === null) level.at = (level.at as number) + 1;
        expectName = level?.names !== null;
        break;
      case '"': {
        const end = endOfString(text, index);
        if (expectName && level?.names) {
          const spelled = text.slice(index, end + 1);
          const name = spelled.includes("\\") ? (JSON.parse(spelled) as string) : spelled.slice(1, -1);
          level.at = name;
          if (level.names.has(name)) {
            const field = pointer();
            throw new ApiError("duplicate_key", "A property occurs twice in the same object.", { field });
          }
          level.names.add(name);
          expectName = false;
        }
        index = end;
        break;
      }
      default:
        if (/[-0-9]/.test(character)) {
          const end = endOfNumber(text, index);
          if (!Number.isFinite(Number(text.slice(index, end)))) {
            throw new ApiError("number_out_of_range", "A number is beyond the range of a double.", {
              field: pointer(),
            });
          }
          index = end - 1;
        }
    }
  }
}

function endOfString(text: string, start: number): number {
  for (let end = start + 1; ; end += 1) {
    end = text.indexOf('"', end);
    let escapes = 0;
    while (text[end - 1 - escapes] === "\\") escapes += 1;
    if (escapes % 2 === 0) return end;
  }
}

function endOfNumber(text: string, start: number): number {
  let end = start + 1;
  while (end < text.length && /[0-9.eE+-]/.test(text[end] as string)) end += 1;
  return end;
}
