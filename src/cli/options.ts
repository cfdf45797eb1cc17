import { InvalidArgumentError, Option } from "commander";
import { limits } from "../contracts/limits.js";

/** An option parser for whole numbers within bounds. */
export function integerBetween(minimum: number, maximum: number): (text: string) => number {
  return (text) => {
    const value = /^(\d+|-[1-9]\d*)$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= minimum && value <= maximum)) {
      throw new InvalidArgumentError(`It must be a whole number between ${minimum} and ${maximum}.`);
    }
    return value;
  };
}

/** An option with a fixed list of values. */
export function choice(flags: string, description: string, words: readonly string[]): Option {
  return new Option(flags, description).choices(words);
}

export const switches = ["on", "off"];

/** `--api-key` of services that can be shared on a network. */
export function keyOption(): Option {
  return new Option("--api-key <key>", "API key required for all routes except /health")
    .env("TAPLINE_API_KEY")
    .argParser(headerKey);
}

export function corsOption(): Option {
  const description = "origin of web pages that may use /v1, or *; repeatable";
  return new Option("--cors <origin>", description).argParser(originList);
}

/** An option parser for keys that are valid in an HTTP header. */
export function headerKey(key: string): string {
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new InvalidArgumentError("It must consist of printable ASCII characters without spaces.");
  return key;
}

/** An option parser that collects origins. */
export function originList(text: string, before: string[] = []): string[] {
  return [...before, readOrigin(text)];
}

/** Reads an origin as browsers send it: scheme and host only. @throws InvalidArgumentError for anything else */
function readOrigin(text: string): string {
  if (text === "*") return text;
  const origin = URL.canParse(text) ? new URL(text) : undefined;
  if (origin === undefined || !/^https?:$/.test(origin.protocol) || origin.href !== `${origin.origin}/`) {
    throw new InvalidArgumentError(`It must be an origin such as http://localhost:3000, or *, got ${text}.`);
  }
  return origin.origin;
}

/** An option parser for numbers within bounds. */
export function numberBetween(minimum: number, maximum: number): (text: string) => number {
  return (text) => {
    const value = text.trim() === "" ? Number.NaN : Number(text);
    if (!(value >= minimum && value <= maximum)) {
      throw new InvalidArgumentError(`It must be a number between ${minimum} and ${maximum}.`);
    }
    return value;
  };
}

/** An option parser that collects repeated values. */
export function collect(text: string, before: string[] = []): string[] {
  return [...before, filled(text)];
}

/** An option parser that collects LoRA adapters, `file` or `file:scale`. */
export function loraList(
  text: string,
  before: { path: string; scale: number }[] = [],
): { path: string; scale: number }[] {
  const [, path = text, scale = "1"] = /^(.+):(-?\d+(?:\.\d+)?)$/.exec(text) ?? [];
  if (path === "") throw new InvalidArgumentError("It must be a .gguf file.");
  return [...before, { path, scale: Number(scale) }];
}

/** An option parser for numbers separated by commas. @param hint shown for invalid lists */
export function numbersThat(
  valid: (number: number) => boolean,
  hint: string,
  together: (numbers: number[]) => boolean = () => true,
): (text: string) => number[] {
  return (text) => {
    const numbers = text.split(",").map((part) => (part.trim() === "" ? Number.NaN : Number(part)));
    if (!numbers.every(valid) || !together(numbers)) throw new InvalidArgumentError(hint);
    return numbers;
  };
}

/** A parser of shares: `3,1`. */
export const shareList = numbersThat(
  (share) => share >= 0,
  "Write numbers separated by commas, such as 3,1.",
  (shares) => shares.length <= 128 && shares.some((share) => share > 0),
);

/** An option parser for texts that must not be empty. */
export function filled(text: string): string {
  if (text === "") throw new InvalidArgumentError("It must not be empty.");
  return text;
}

/** An option parser for block indices: `5`, `0,3,7`, `0-7`, `0-3,7`. */
export function layerList(text: string): number[] {
  const layers = anyLayers(text);
  if (layers.length > limits.layers) throw refused(`At most ${limits.layers} layers, got ${layers.length}.`);
  return layers;
}

/** The same without a limit on their number. */
export function anyLayers(text: string): number[] {
  const layers: number[] = [];
  for (const part of text.split(",")) {
    const [, from, to] = /^\s*(\d{1,3})(?:\s*-\s*(\d{1,3}))?\s*$/.exec(part) ?? [];
    if (from === undefined) throw refused(`“${part.trim()}” is neither an index nor a range such as 0-7.`);
    const last = Number(to ?? from);
    if (last < Number(from)) throw refused(`The range ${part.trim()} is reversed.`);
    if (last > limits.layer_index)
      throw refused(`An index can be at most ${limits.layer_index}, got ${last}.`);
    for (let layer = Number(from); layer <= last; layer++) layers.push(layer);
  }
  if (new Set(layers).size !== layers.length) throw refused("An index occurs twice.");
  return layers;
}

function refused(reason: string): InvalidArgumentError {
  return new InvalidArgumentError(`${reason} Write layers such as 0,3,7 or 0-7.`);
}
