import type { Command } from "commander";

/** `tapline models`: cached models, from the headers of their files. */
export function registerModels(program: Command): void {
  program
    .command("models")
    .description("List the GGUF models in the shared Hugging Face cache, without loading them.")
    .option(
      "--points <model>",
      "load a model and list which hook points of its blocks can be read and changed",
    )
    .option("--json", "print all details as JSON")
    .addHelpText(
      "after",
      "\nThe ids in the first column work with --model, pull and rm.\n\nExamples:\n  tapline models\n  tapline models --points demo\n  tapline models --json | jq -r '.models[].id'",
    )
    .action(list);
}

async function list(options: { json?: boolean; points?: string }): Promise<void> {
  if (options.points !== undefined) return pointsOf(options.points, options.json === true);
  const [{ listCached }, terminal, { parametersText }, { print, printJson }] = await Promise.all([
    import("../../models/hub/cached.js"),
    import("../../terminal/index.js"),
    import("../../findings/numbers.js"),
    import("../output.js"),
  ]);
  const contents = await listCached();
  if (options.json) return printJson(contents);
  const { ago, bytes, canvasOf, table } = terminal;
  const { folder, models, unfinished } = contents;
  const lines =
    models.length === 0
      ? [`No GGUF models in the cache ${folder}. Download one with tapline pull.`]
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
            header === null ? "" : parametersText(header.parameters),
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
        ? `${repository} is being downloaded: ${bytes(size)} so far.`
        : `${repository} has an unfinished download of ${bytes(size)}: tapline pull resumes it, tapline rm removes it.`,
    );
  }
  await print(lines.join("\n"));
}

/** The meaning of each hook point of a model's blocks, or why it is not available. */
async function pointsOf(id: string, asJson: boolean): Promise<void> {
  const [{ resolveModel }, { Model, points }, { canvasOf, table }, { print, printJson }] = await Promise.all([
    import("../../models/resolve.js"),
    import("../../native/index.js"),
    import("../../terminal/index.js"),
    import("../output.js"),
  ]);
  const model = await Model.open((await resolveModel(id)).path);
  try {
    const context = await model.createContext({ keepAttention: true });
    const { architecture, nLayer } = model.info;
    const found = points.map((point) => {
      const { heads, ...support } = context.points[point];
      return { point, ...support, ...(heads.some((count) => count > 0) ? { heads } : {}) };
    });
    if (asJson)
      return printJson({ model: id, architecture, blocks: nLayer, form: context.form, points: found });
    const form = Object.entries(forms).flatMap(([name, what]) =>
      context.form[name as keyof typeof forms] ? [what] : [],
    );
    await print(
      [
        `${id}: ${architecture}, ${nLayer} blocks${form.length === 0 ? "" : `; ${form.join("; ")}`}.`,
        "",
        ...table(
          [
            { title: "point", least: 9 },
            { title: "available", least: 9 },
            { title: "meaning, or why it is not available" },
          ],
          found.map(({ point, supported, reason, layers }) => [
            point,
            supported ? (layers.length < nLayer ? "partly" : "yes") : "no",
            supported
              ? `${meanings[point]}${layers.length < nLayer ? `; in blocks ${layers.join(", ")}` : ""}`
              : reason,
          ]),
          canvasOf(process.stdout),
        ),
      ].join("\n"),
    );
  } finally {
    await model.close();
  }
}

const meanings = {
  block_in: "the residual stream into the block",
  attention: "attention weights by head",
  head_out: "each head's output, before the output projection",
  attn_out: "what attention, or another token mixer, adds to the residual stream",
  mid: "the residual stream between attention and MLP",
  ffn_in: "what the MLP or the experts read: the output of the norm before them",
  router: "the experts chosen for each token, and their weights",
  ffn_out: "what the MLP or the experts add to the residual stream",
  block_out: "the residual stream after the block",
};

const forms = {
  parallel: "attention and MLP read the same input",
  normed: "what is added to the residual stream is normalized first",
  scaled: "what is added to the residual stream is scaled",
};
