import { InvalidArgumentError } from "commander";
import { limits } from "../contracts/limits.js";

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
