import type { Operation } from "../contracts/index.js";

/** Length of a title, in characters. */
export const mostTitle = 90;

type Config = Record<string, unknown>;

const titles: Record<Operation, (config: Config) => string> = {
  inspect: ({ prompt }) => quoted(prompt),
  compare: ({ intervention, prompt, prompts, layers }) =>
    `${intervention ?? "change"} ${quoted(prompt ?? first(prompts))}${at(layers)}`,
  patch_sweep({ clean, corrupted, pairs }) {
    const pair = first(pairs) as Config | undefined;
    return `${quoted(clean ?? pair?.clean)} and ${quoted(corrupted ?? pair?.corrupted)}`;
  },
  probe({ examples, layers }) {
    const given = (Array.isArray(examples) ? examples : []) as { text?: unknown; label?: unknown }[];
    const of = (label: number) => given.find((one) => one.label === label)?.text;
    const [one, other] = withoutStart(of(1), of(0));
    return `${quoted(one, 30)} or ${quoted(other, 30)}${at(layers)}`;
  },
  sae: ({ layers, features }) =>
    `train a dictionary${features === undefined ? "" : ` of ${String(features)} features`}${at(layers)}`,
  features: ({ texts, dictionary }) =>
    `${quoted(first(texts))} through ${String(dictionary ?? "a dictionary")}`,
  extract: ({ layers }) => `activations of a data set${at(layers)}`,
  drift: ({ model, other }) => `${baseName(model)} and ${baseName(other)}`,
  graph: ({ prompt, target_token }) =>
    `graph of ${target_token === undefined ? "" : `${quoted(target_token)} after `}${quoted(prompt)}`,
  explain: ({ prompt, texts }) => `describe ${quoted(prompt ?? first(texts))}`,
};

/** A job's title, made from its prompt or, without one, from what it is about. */
export function titleOf(operation: Operation, config: Config): string {
  const title = titles[operation](config);
  return Array.from(title).length <= mostTitle
    ? title
    : `${Array.from(title)
        .slice(0, mostTitle - 1)
        .join("")}…`;
}

/** Two texts without the words that both begin with, which say nothing of the difference. */
function withoutStart(one: unknown, other: unknown): [unknown, unknown] {
  if (typeof one !== "string" || typeof other !== "string" || one === other) return [one, other];
  let same = 0;
  while (one[same] === other[same]) same += 1;
  const start = one.lastIndexOf(" ", same - 1) + 1;
  return start < 12 ? [one, other] : [`…${one.slice(start)}`, `…${other.slice(start)}`];
}

function quoted(text: unknown, most = 40): string {
  if (typeof text !== "string") return "its texts";
  const line = text.replace(/\s+/g, " ").trim();
  const letters = Array.from(line);
  return `“${letters.length <= most ? line : `${letters.slice(0, most - 1).join("")}…`}”`;
}

function first(list: unknown): unknown {
  return Array.isArray(list) ? list[0] : undefined;
}

function at(layers: unknown): string {
  if (!Array.isArray(layers) || layers.length === 0) return "";
  return layers.length === 1 ? ` at layer ${layers[0]}` : ` at ${layers.length} layers`;
}

function baseName(model: unknown): string {
  return typeof model === "string" ? (model.split(/[/\\]/).at(-1) ?? model) : "a model";
}
