import type { Command } from "commander";

/** `tapline models`: what is cached, from the files' own headers. */
export function registerModels(program: Command): void {
  program
    .command("models")
    .description("List the GGUF models in the hub's shared cache, without loading them.")
    .option("--json", "print everything that is known as JSON, for programs")
    .addHelpText(
      "after",
      "\nThe first column is what --model, pull and rm take.\n\nExamples:\n  tapline models\n  tapline models --json | jq -r '.models[].id'",
    )
    .action(list);
}

async function list(options: { json?: boolean }): Promise<void> {
  const [{ listCached }, terminal, { print, printJson }] = await Promise.all([
    import("../models/hub/cached.js"),
    import("../terminal/index.js"),
    import("./output.js"),
  ]);
  const contents = await listCached();
  if (options.json) return printJson(contents);
  const { ago, bytes, canvasOf, table } = terminal;
  const { folder, models, unfinished } = contents;
  const lines =
    models.length === 0
      ? [`The cache ${folder} holds no GGUF model; tapline pull brings one.`]
      : table(
          [
            { title: "model", least: 24 },
            { title: "architecture", dispensable: 2 },
            { title: "parameters", align: "right" },
            { title: "quant" },
            { title: "context", align: "right", dispensable: 1 },
            { title: "size", align: "right" },
            { title: "last use", align: "right", dispensable: 3 },
          ],
          models.map(({ id, header, bytes: size, lastUsed }) => [
            id,
            header?.architecture ?? "unreadable",
            header === null ? "" : parameters(header.parameters),
            header?.quantization ?? "",
            header?.context == null ? "" : String(header.context),
            bytes(size),
            ago(lastUsed),
          ]),
          canvasOf(process.stdout),
        );
  for (const { repository, bytes: size, underWay } of unfinished) {
    lines.push(
      underWay
        ? `${repository} is being downloaded; ${bytes(size)} are here.`
        : `${repository} has an unfinished download of ${bytes(size)}: tapline pull continues it, tapline rm removes it.`,
    );
  }
  await print(lines.join("\n"));
}

/** `1.5 M`, `494 M`, `7.2 B`: as models are named. */
function parameters(count: number): string {
  const [unit, name] = count >= 1e9 ? [1e9, "B"] : [1e6, "M"];
  const value = count / (unit as number);
  return `${value >= 99.5 ? Math.round(value) : value.toPrecision(2)} ${name}`;
}
