import { InvalidArgumentError, Option } from "commander";
import { limits } from "../contracts/limits.js";

/** A parser of whole numbers within bounds, for commander's options. */
export function integerBetween(minimum: number, maximum: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= minimum && value <= maximum)) {
      throw new InvalidArgumentError(`It must be a whole number between ${minimum} and ${maximum}.`);
    }
    return value;
  };
}

/** An option that takes one of some words. */
export function choice(flags: string, description: string, words: readonly string[]): Option {
  return new Option(flags, description).choices(words);
}

export const switches = ["on", "off"];

/** `--api-key` and `--cors` of what may be shared on a network. */
export function keyOption(): Option {
  return new Option("--api-key <key>", "key that all but /health asks for")
    .env("TAPLINE_API_KEY")
    .argParser(headerKey);
}

export function corsOption(): Option {
  const description = "origin whose pages may use /v1, or *; once for each";
  return new Option("--cors <origin>", description).argParser(originList);
}

/** A parser of keys that fit into an HTTP header, for commander's options. */
export function headerKey(key: string): string {
  if (!/^[\x21-\x7e]+$/.test(key)) throw new InvalidArgumentError("It must be visible ASCII without spaces.");
  return key;
}

/** A parser of origins that adds each to those before, for commander's options. */
export function originList(text: string, before: string[] = []): string[] {
  return [...before, readOrigin(text)];
}

/** Reads an origin as a browser sends it: scheme and host, nothing behind them. @throws InvalidArgumentError for anything else */
function readOrigin(text: string): string {
  if (text === "*") return text;
  const origin = URL.canParse(text) ? new URL(text) : undefined;
  if (origin === undefined || !/^https?:$/.test(origin.protocol) || origin.href !== `${origin.origin}/`) {
    throw new InvalidArgumentError(
      `An origin looks like http://localhost:3000, or * for every one; got ${text}.`,
    );
  }
  return origin.origin;
}

/** A parser of numbers within bounds, for commander's options. */
export function numberBetween(minimum: number, maximum: number): (text: string) => number {
  return (text) => {
    const value = text.trim() === "" ? Number.NaN : Number(text);
    if (!(value >= minimum && value <= maximum)) {
      throw new InvalidArgumentError(`It must be a number between ${minimum} and ${maximum}.`);
    }
    return value;
  };
}

/** Adds each text to those before, for options that may be given several times. */
export function collect(text: string, before: string[] = []): string[] {
  if (text === "") throw new InvalidArgumentError("It must not be empty.");
  return [...before, text];
}

/** A parser of LoRA adapters, `file` or `file:scale`, that adds each to those before. */
export function loraList(
  text: string,
  before: { path: string; scale: number }[] = [],
): { path: string; scale: number }[] {
  const [, path = text, scale = "1"] = /^(.+):(-?\d+(?:\.\d+)?)$/.exec(text) ?? [];
  if (path === "") throw new InvalidArgumentError("It must name a .gguf file.");
  return [...before, { path, scale: Number(scale) }];
}

/** A parser of shares, whole or not: `3,1`. */
export function shareList(text: string): number[] {
  const shares = text.split(",").map((share) => (share.trim() === "" ? Number.NaN : Number(share)));
  if (shares.length > 128 || !shares.every((share) => share >= 0) || !shares.some((share) => share > 0)) {
    throw new InvalidArgumentError("Shares are numbers with commas between them, e.g. 3,1.");
  }
  return shares;
}

/** Reads a list of block indices as people write it: `5`, `0,3,7`, `0-7`, `0-3,7`. For commander's options. */
export function layerList(text: string): number[] {
  const layers = anyLayers(text);
  if (layers.length > limits.layers) throw refused(`At most ${limits.layers} layers, got ${layers.length}.`);
  return layers;
}

/** The same, of any number of them. */
export function anyLayers(text: string): number[] {
  const layers: number[] = [];
  for (const part of text.split(",")) {
    const [, from, to] = /^\s*(\d{1,3})(?:\s*-\s*(\d{1,3}))?\s*$/.exec(part) ?? [];
    if (from === undefined) throw refused(`“${part.trim()}” is neither an index nor a range such as 0-7.`);
    const last = Number(to ?? from);
    if (last < Number(from)) throw refused(`The range ${part.trim()} runs backwards.`);
    if (last > limits.layer_index) throw refused(`Indices go up to ${limits.layer_index}, got ${last}.`);
    for (let layer = Number(from); layer <= last; layer++) layers.push(layer);
  }
  if (new Set(layers).size !== layers.length) throw refused("An index appears twice.");
  return layers;
}

function refused(reason: string): InvalidArgumentError {
  return new InvalidArgumentError(`${reason} Write layers as 0,3,7 or 0-7.`);
}
