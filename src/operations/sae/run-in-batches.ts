import { join } from "node:path";
import type { ExtractConfig, SaeConfig, SaeResult } from "../../contracts/index.js";
import { defaults } from "../../contracts/limits.js";
import { type BlockPoint, pointField, type RowsRead } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";
import { pointOfRows } from "../../lab/extraction/open-extraction.js";
import { hasSaeLens, writeOwn, writeSaeLens } from "../../lab/training/files.js";
import { trainingRows } from "../../lab/training/rows.js";
import { trainDictionary } from "../../lab/training/train.js";
import { modelFingerprint } from "../../library/index.js";
import { extract } from "../extract/run.js";
import type { Findings, OperationInput } from "../run.js";

/**
 * Trains a dictionary in batches for each selected layer, on an extraction or on the examples, which are extracted first.
 * Writes the weights in the Lab's layout and, for a single layer, in SAELens's.
 */
export async function batchSae(input: OperationInput<SaeConfig>): Promise<Findings<SaeResult>> {
  const { from, examples } = input.config;
  if (from !== undefined) return trainOn(from, input);
  return input.artifacts.scratch(async (folder) => {
    const rows = join(folder, "rows");
    await extract({ ...input, config: extraction(input.config, rows) });
    return trainOn(rows, input, (text) => examples?.[text]?.split);
  });
}

function extraction(config: SaeConfig, out: string): ExtractConfig {
  const { model, layers, max_input_tokens, max_tokens, seed, point, target, examples = [] } = config;
  return {
    ...{ operation: "extract", model, layers, max_input_tokens, max_tokens, seed, out },
    examples: examples.map(({ text, prompt }) => ({ text, ...(prompt !== undefined && { prompt }) })),
    ...(point && { point }),
    ...(target && { target }),
    rows: config.rows ?? "last",
    dtype: "f32",
    too_long: "refuse",
    shard_tokens: defaults.shard_tokens,
  };
}

async function trainOn(
  folder: string,
  input: OperationInput<SaeConfig>,
  splitOf?: (text: number) => "train" | "test" | undefined,
): Promise<Findings<SaeResult>> {
  const { config, model, artifacts, clock, signal } = input;
  const { layers, examples, target, architecture = "relu" } = config;
  const reports: SaeResult["reports"] = [];
  let point: BlockPoint = "block_out";
  let read: RowsRead = "last";
  for (const [index, layer] of layers.entries()) {
    const rows = await clock.measure("plan", () =>
      trainingRows(folder, {
        ...{ layer, rows: config.rows, point: config.point, target, seed: config.seed },
        first_position: config.first_position,
        ...(splitOf && { splitOf }),
      }),
    );
    const { fingerprint, name } = rows.extraction.model;
    point = pointOfRows(rows.extraction);
    read = config.rows ?? rows.extraction.form.rows;
    if (fingerprint !== (await modelFingerprint(model.info.path))) {
      throw new UserError(
        `${folder} was extracted from ${name || "another model"}, not from ${config.model}.`,
      );
    }
    const { report, weights, settings } = await clock.measure("train", () =>
      trainDictionary({
        rows,
        settings: { ...config, architecture },
        signal,
        progress: ({ stage, done, total }) =>
          input.progress({
            stage: layers.length === 1 ? stage : `layer ${layer}: ${stage}`,
            done: index * total + done,
            total: layers.length * total,
          }),
        textOf: ({ text, token }) => examples?.[text]?.text ?? `text ${text}, token ${token}`,
      }),
    );
    const trained = {
      ...{ layer, point, target, architecture, k: settings.k, weights },
      model: model.info.name,
      prependBos: model.info.addBos,
      firstPosition: config.first_position,
    };
    await clock.measure("artifact", async () => {
      await writeOwn(artifacts, trained);
      if (layers.length === 1 && hasSaeLens({ ...config, architecture }))
        await writeSaeLens(artifacts, trained);
    });
    reports.push({ layer, ...report });
  }
  return { ...pointField(point), ...(target && { target }), ...(read !== "last" && { rows: read }), reports };
}
