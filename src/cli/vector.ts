import { basename } from "node:path";
import { type Command, Option } from "commander";
import type { StoredVector } from "../contracts/library.js";
import { liveLimits } from "../contracts/live-limits.js";
import { UsageError } from "./exit-code.js";
import { layerList } from "./layers.js";
import { integerBetween } from "./options.js";
import { serverOption } from "./service-address.js";

interface VectorOptions {
  url: string;
  json?: boolean;
}

interface MakeOptions extends VectorOptions {
  positive: string;
  negative: string;
  layers: number[];
  position?: "last" | "mean";
  method?: "difference" | "pca";
}

interface AddOptions extends VectorOptions {
  layer?: number;
  restamp?: boolean;
}

/** Many texts are many forward passes, and each waits for its turn. */
const makeTimeoutMs = 600_000;

/** `tapline vector`: directions by name, made on a running server's model, for its requests. */
export function registerVector(program: Command): void {
  const vector = program
    .command("vector")
    .description("Directions by name: make, list, show, add, export, remove.");
  const command = (name: string, description: string) =>
    vector
      .command(name)
      .description(description)
      .addOption(serverOption())
      .option("--json", "print what the server answers as JSON, for programs");

  command("make", "Make a direction from two lists of texts on the model that serves.")
    .argument("<name>", "letters, digits, dots, dashes")
    .requiredOption(
      "--positive <file>",
      `texts, one a line, or JSON, JSON Lines, CSV; at most ${liveLimits.texts}`,
    )
    .requiredOption("--negative <file>", "texts on the other side")
    .requiredOption("--layers <list>", `up to ${liveLimits.layers} blocks as 4,5`, layerList)
    .addOption(
      new Option("--position <which>", "state of each text (default: last)").choices(["last", "mean"]),
    )
    .addOption(
      new Option(
        "--method <name>",
        "difference of means (default), or the first component of paired differences",
      ).choices(["difference", "pca"]),
    )
    .addHelpText(
      "after",
      "\nExamples:\n  tapline vector make polite --positive polite.txt --negative blunt.txt --layers 4,5",
    )
    .action(make);
  command("list", "List the directions that are kept.").action(list);
  command("show", "Show one direction: its layers, lengths, how well it separates.")
    .argument("<name>")
    .action(show);
  command("add", "Keep a direction from a file: .safetensors, .npz, or a control vector's .gguf.")
    .argument("<name>")
    .argument("<file>")
    .option("--layer <number>", "layer of a file that does not say", integerBetween(0, 255))
    .option("--restamp", "take a file that says that it belongs to another model")
    .action(add);
  command("export", "Write a direction to a file: .safetensors, or .gguf for llama.cpp's --control-vector.")
    .argument("<name>")
    .argument("<file>")
    .action(exportTo);
  command("rm", "Forget a direction.").argument("<name>").action(remove);
}

async function tools({ url }: VectorOptions, timeoutMs = 30_000) {
  const [{ Transport }, { print, printJson, writeOut }] = await Promise.all([
    import("../client/transport.js"),
    import("./output.js"),
  ]);
  return { http: new Transport(url, timeoutMs), print, printJson, writeOut };
}

const pathOf = (name: string) => `/lab/vectors/${encodeURIComponent(name)}`;

async function make(name: string, options: MakeOptions): Promise<void> {
  const { readPrompts } = await import("./input-files.js");
  const { http, ...out } = await tools(options, makeTimeoutMs);
  const { position, method, layers } = options;
  const body = {
    name,
    layers,
    positive: await readPrompts(options.positive),
    negative: await readPrompts(options.negative),
    ...(position && { position }),
    ...(method && { method }),
  };
  const made = await http.json<StoredVector>("/lab/vectors", { method: "POST", body });
  return options.json ? out.printJson(made) : out.print(tableOf(made));
}

async function list(options: VectorOptions): Promise<void> {
  const { http, print, printJson } = await tools(options);
  const answer = await http.json<{ vectors: StoredVector[] }>("/lab/vectors");
  if (options.json) return printJson(answer);
  const lines = answer.vectors.map(
    ({ name, layers, model, n_embd }) =>
      `${name.padEnd(24)} layers ${layers.map(({ layer }) => layer).join(",")}, width ${n_embd}, ${model?.id ?? "any model"}`,
  );
  return print(
    lines.length === 0 ? "There are no vectors yet; tapline vector make makes one." : lines.join("\n"),
  );
}

async function show(name: string, options: VectorOptions): Promise<void> {
  const { http, print, printJson } = await tools(options);
  const vector = await http.json<StoredVector>(pathOf(name));
  return options.json ? printJson(vector) : print(tableOf(vector));
}

async function add(name: string, file: string, options: AddOptions): Promise<void> {
  const { readFile } = await import("node:fs/promises");
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${file} cannot be read (${error.code}).`);
  });
  const { http, print, printJson } = await tools(options);
  const query = new URLSearchParams({
    ...(options.layer !== undefined && { layer: String(options.layer) }),
    ...(options.restamp && { restamp: "1" }),
  });
  const kept = await http.json<StoredVector>(`${pathOf(name)}?${query}`, { method: "PUT", body: bytes });
  return options.json ? printJson(kept) : print(tableOf(kept));
}

async function exportTo(name: string, file: string, options: VectorOptions): Promise<void> {
  const form = /\.(safetensors|gguf)$/i.exec(basename(file))?.[1]?.toLowerCase();
  if (form === undefined) throw new UsageError(`${file}: a vector is written as .safetensors or .gguf.`);
  const { http, print, printJson, writeOut } = await tools(options);
  const bytes = await http.bytes(`${pathOf(name)}?format=${form}`);
  await writeOut(file, bytes);
  return options.json
    ? printJson({ name, file, bytes: bytes.length })
    : print(`${file} (${bytes.length} bytes)`);
}

async function remove(name: string, options: VectorOptions): Promise<void> {
  const { http, print, printJson } = await tools(options);
  const answer = await http.json(pathOf(name), { method: "DELETE" });
  return options.json ? printJson(answer) : print(`${name} is forgotten.`);
}

function tableOf({ name, sha256, layers, note }: StoredVector): string {
  const figure = (value: number | null | undefined, digits = 3) =>
    value == null ? "-" : value.toFixed(digits);
  const rows = layers.map(({ layer, length, typical_row: row, separation, shuffled_separation: shuffled }) =>
    [
      String(layer),
      figure(length, 2),
      row === undefined ? "-" : `${((100 * length) / row).toFixed(1)} %`,
      figure(separation),
      figure(shuffled),
    ]
      .map((cell) => cell.padStart(12))
      .join(""),
  );
  const head = ["layer", "length", "of a row", "AUROC", "shuffled"].map((cell) => cell.padStart(12)).join("");
  return [`${name}  ${sha256.slice(0, 16)}`, head, ...rows, ...(note === "" ? [] : [note])].join("\n");
}
