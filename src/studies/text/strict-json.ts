import { studyLimits } from "../../contracts/studies/index.js";
import { ApiError } from "../api-error.js";

/**
 * Parses JSON strictly: rejects input that parsers interpret differently, namely invalid UTF-8, byte order marks,
 * duplicate keys and numbers outside a double's range. Nesting is limited to 32 levels. `\u0000` and unpaired surrogate
 * escapes are allowed.
 * @throws ApiError with a code and a JSON pointer
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
  /** Names seen so far; null in an array. */
  names: Set<string> | null;
  /** The pointer's next name or index. */
  at: string | number;
}

// The text is valid JSON, so a token's first character identifies it.
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
          throw new ApiError(
            "too_deep",
            `The body is nested more than ${studyLimits.json_depth} levels deep.`,
            {
              field: pointer(),
            },
          );
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
            throw new ApiError("duplicate_key", "An object has the same property twice.", { field });
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
            throw new ApiError("number_out_of_range", "A number is outside the range of a double.", {
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
