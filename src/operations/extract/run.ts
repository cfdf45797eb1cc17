import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Excluded } from "../../contracts/excluded.js";
import type { ExtractConfig, ExtractResult } from "../../contracts/index.js";
import { isBucket, pointField } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";
import { version } from "../../contracts/version.js";
import type { Artifacts } from "../../lab/artifacts.js";
import {
  ExtractionFolder,
  extractionFormat,
  type IndexHead,
  indexText,
  type ShardFolder,
} from "../../lab/extraction/folder.js";
import {
  indexName,
  type Plan,
  Planner,
  type RowForm,
  type Shard,
  tableName,
} from "../../lab/extraction/plan.js";
import { RowWriter } from "../../lab/extraction/row-writer.js";
import { type SpooledText, TokenSpool } from "../../lab/extraction/spool.js";
import type { TableWriter } from "../../lab/extraction/table.js";
import {
  describedText,
  type GivenText,
  givenTexts,
  type TextSource,
  textsOfData,
} from "../../lab/extraction/texts.js";
import { exampleTokens, skippedIn } from "../../lab/rows/example-tokens.js";
import { checkPoints, openContext } from "../../lab/rows/open-context.js";
import { batchSequences, packedContext, tokensOfBatch } from "../../lab/rows/packing.js";
import { checkLayers, checkLength } from "../../lab/rows/tokens.js";
import { modelFingerprint } from "../../library/index.js";
import { sumOfExcluded } from "../../native/excluded.js";
import { backendInfo, type Context } from "../../native/index.js";
import { bytesText } from "../../text/words.js";
import type { Findings, OperationInput, Run } from "../run.js";

const excludesNothing: Excluded = { bos: 0, outliers: 0 };

/** An extraction whose size is known. */
interface Extraction {
  input: OperationInput<ExtractConfig>;
  source: TextSource;
  part: readonly [number, number];
  form: RowForm;
  plan: Plan;
  /** Hash of the texts. */
  sha256: string;
  /** Tokens of the longest text. */
  longest: number;
}

/** Writes the activations of a data set at block outputs or another point to disk: counts first, then shard by shard. */
export async function extract(input: OperationInput<ExtractConfig>): Promise<Findings<ExtractResult>> {
  const { config, model, clock } = input;
  checkLayers(model, config.layers);
  const source = config.data === undefined ? givenTexts(config.examples ?? []) : textsOfData(config.data);
  if (config.plan === true) {
    const extraction = await clock.measure("plan", () => planned(input, source));
    return describe(extraction, { kept: 0, computed: 0, seconds: 0, excluded: new Map() });
  }
  // The tokens and the table grow with the data set, so they are on the job's disk until all shards are complete.
  return input.artifacts.scratch(async (scratch) => {
    const table = join(scratch, "table");
    const spool = new TokenSpool(join(scratch, "tokens"));
    const { TableWriter } = await import("../../lab/extraction/table.js"); // Parquet, for this operation only
    const writer = new TableWriter(table);
    const extraction = await clock.measure("plan", () => planned(input, source, { table: writer, spool }));
    await writer.finish();
    await spool.finish();
    return written(extraction, { table, spool, scratch });
  });
}

/** What counting the texts leaves on the job's disk. */
interface Counted {
  table: string;
  spool: TokenSpool;
  scratch: string;
}

async function written(extraction: Extraction, counted: Counted): Promise<Findings<ExtractResult>> {
  const { input, plan, part } = extraction;
  const head = await headOf(extraction);
  const index = indexName(part);
  const { copyTable } = await import("../../lab/extraction/table.js");
  const { out } = input.config;
  if (out === undefined) {
    const made = await makeShards(extraction, counted.spool, { artifacts: input.artifacts });
    await copyTable(counted.table, input.artifacts, index);
    await input.artifacts.create(index, async (file) => {
      await file.write(Buffer.from(indexText(head, plan, true)), 0);
    });
    return describe(extraction, made);
  }
  const folder = await openFolder(out, part, counted.scratch);
  try {
    const finished = await folder.begin(head, plan);
    const made = await makeShards(extraction, counted.spool, {
      ...{ artifacts: folder.artifacts, finished },
      keep: (name) => folder.keep(name),
    });
    await copyTable(counted.table, folder.artifacts, index);
    await folder.keep(tableName(index));
    await folder.write(head, plan, true);
    return describe(extraction, made);
  } finally {
    await folder.close();
  }
}

async function openFolder(
  out: string,
  part: readonly [number, number],
  scratch: string,
): Promise<ShardFolder> {
  if (!isBucket(out)) return ExtractionFolder.open(out, part);
  const { BucketFolder } = await import("../../lab/extraction/bucket.js");
  return new BucketFolder(out.replace(/\/+$/, ""), part, scratch);
}

async function planned(
  input: OperationInput<ExtractConfig>,
  source: TextSource,
  kept: { table?: TableWriter; spool?: TokenSpool } = {},
): Promise<Extraction> {
  const { config, model, progress } = input;
  const { layers, rows, dtype } = config;
  const part = (config.shard ?? [0, 1]) as [number, number];
  const form = {
    ...{ layers, ...pointField(config.point), ...(config.target && { target: config.target }) },
    ...{ hidden: model.info.nEmbd, rows, dtype },
  };
  const planner = new Planner(form, part, config.shard_tokens);
  const hash = createHash("sha256");
  let longest = 0;
  for await (const text of tokensOf(input, source, part, (bytes) => hash.update(bytes))) {
    const { index, tokens, cut, given } = text;
    const place = planner.add(tokens.length, cut);
    await kept.spool?.add(text);
    await kept.table?.add({ text: index, tokens: tokens.length, ...place, ...describedText(given, rows) });
    longest = Math.max(longest, tokens.length);
    progress({ stage: "counting tokens", done: planner.tokens, total: 0 });
  }
  const plan = planner.finish();
  if (plan.texts === 0) {
    const whole = part[1] === 1 ? "" : `, as part ${part[0]} of ${part[1]}`;
    throw new UserError(`There are no texts in ${source.name}${whole}.`);
  }
  return { input, source, part, form, plan, sha256: hash.digest("hex"), longest };
}

interface Tokens extends SpooledText {
  cut: boolean;
  given: GivenText;
}

/** The tokenized texts of one part. */
async function* tokensOf(
  { config, model }: OperationInput<ExtractConfig>,
  source: TextSource,
  [own, parts]: readonly [number, number],
  onBytes?: (bytes: Uint8Array) => void,
): AsyncGenerator<Tokens> {
  let index = -1;
  for await (const text of source.read(onBytes)) {
    index++;
    if (index % parts !== own) continue;
    const what = `Text ${index} of ${source.name}`;
    const { tokens, start } = await exampleTokens(model, text, config.rows, what);
    const kept = config.too_long === "cut" ? tokens.slice(0, config.max_input_tokens) : tokens;
    checkLength(model, kept, config.max_input_tokens, what);
    if (config.rows === "response" && start >= kept.length) {
      throw new UserError(
        `${what} has ${start} tokens before its response; none of it is within the ${config.max_input_tokens} kept tokens.`,
      );
    }
    yield {
      ...{ index, tokens: kept, start: Math.min(start, kept.length - 1) },
      ...{ cut: kept.length < tokens.length, given: text },
    };
  }
}

/** Everything that determines the values, and the software that computed them. */
async function headOf({ input, source, part, form, sha256 }: Extraction): Promise<IndexHead> {
  const { config, model } = input;
  const { llamaCpp, backend } = backendInfo();
  return {
    format: extractionFormat,
    source: {
      data: { name: source.name, sha256 },
      shard: [...part],
      model_fingerprint: await modelFingerprint(model.info.path),
      ...form,
      skipped_in_mean: skippedIn(model),
      // Prevents resuming an older extraction, whose means exclude only BOS.
      ...(isMean(form) && { mean_excludes: "norms above 10 medians" }),
      max_input_tokens: config.max_input_tokens,
      too_long: config.too_long,
      "llama.cpp": llamaCpp,
      backend,
    },
    made_with: {
      tapline: version,
      model: model.info.name,
      architecture: model.info.architecture,
      quantization: model.info.quantization,
    },
    shard_tokens: config.shard_tokens,
  };
}

interface Made {
  /** Shards that already existed. */
  kept: number;
  /** Tokens of the shards that were computed. */
  computed: number;
  seconds: number;
  /** By layer: activations excluded from means. */
  excluded: Map<number, Excluded>;
}

/** Where shards go: which exist, and what follows each complete file, while the next one is computed. */
interface Destination {
  artifacts: Artifacts;
  finished?: ReadonlySet<string>;
  keep?: (name: string) => Promise<void>;
}

async function makeShards(
  extraction: Extraction,
  spool: TokenSpool,
  { artifacts, finished = new Set(), keep = async () => {} }: Destination,
): Promise<Made> {
  const { input, plan } = extraction;
  const missing = plan.shards.filter(({ file }) => !finished.has(file));
  const made: Made = {
    kept: plan.shards.length - missing.length,
    computed: 0,
    seconds: 0,
    excluded: new Map(),
  };
  if (missing.length === 0) return made;
  const context = await input.clock.measure("context", () => openContext(input.model, shapeOf(extraction)));
  const started = performance.now();
  let texts: AsyncGenerator<SpooledText> | undefined;
  let keeping = Promise.resolve();
  try {
    const { point = "block_out", target } = extraction.form;
    checkPoints(context, target === undefined ? [point] : [point, target]);
    let before = 0; // texts
    let done = 0; // tokens
    for (const [number, shard] of plan.shards.entries()) {
      if (finished.has(shard.file)) {
        await texts?.return(undefined);
        texts = undefined;
      } else {
        texts ??= spool.read(before);
        const own = texts;
        const stage = `extracting ${bytesText(plan.bytes)}, file ${number + 1} of ${plan.shards.length}`;
        const onTokens = (tokens: number) =>
          input.progress({ stage, done: done + tokens, total: plan.tokens });
        onTokens(0);
        await artifacts
          .create(shard.file, async (file) => {
            const writer = new RowWriter(file, shard, extraction.form);
            await fillShard(extraction, context, own, { shard, writer, onTokens, made });
            await input.clock.measure("artifact", () => writer.finish());
          })
          .catch((error) => Promise.reject(fullDisk(error, extraction, number)));
        await input.clock.measure("artifact", () => keeping);
        keeping = handled(keep(shard.file));
        made.computed += shard.tokens;
      }
      before += shard.texts;
      done += shard.tokens;
    }
    await input.clock.measure("artifact", () => keeping);
  } finally {
    await texts?.return(undefined);
    await context.close();
  }
  made.seconds = (performance.now() - started) / 1000;
  return made;
}

/** A context that holds one batch. */
function shapeOf({ input, plan, form, longest }: Extraction) {
  const most = tokensOfBatch(input.model, { layers: form.layers, everyToken: form.rows !== "last" });
  return packedContext({ count: plan.texts, tokens: plan.tokens, longest }, most);
}

interface Filling {
  shard: Shard;
  writer: RowWriter;
  onTokens: (tokens: number) => void;
  made: Made;
}

/** Computes batch after batch while the previous one is written and the next one is tokenized. */
async function fillShard(
  { input, form }: Extraction,
  context: Context,
  texts: AsyncGenerator<SpooledText>,
  { shard, writer, onTokens, made }: Filling,
): Promise<void> {
  const { signal, clock } = input;
  let left = shard.texts;
  let waiting: SpooledText | undefined;
  const nextBatch = async (): Promise<SpooledText[]> => {
    const batch: SpooledText[] = [];
    let tokens = 0;
    while (left > 0 && batch.length < batchSequences) {
      if (waiting === undefined) {
        waiting = ((await texts.next()) as IteratorYieldResult<SpooledText>).value;
      }
      if (batch.length > 0 && tokens + waiting.tokens.length > context.nBatch) break;
      tokens += waiting.tokens.length;
      batch.push(waiting);
      waiting = undefined;
      left--;
    }
    return batch;
  };
  let written = Promise.resolve();
  let coming = nextBatch();
  let done = 0;
  while (done < shard.tokens) {
    const batch = await coming;
    const tokens = batch.reduce((sum, { tokens }) => sum + tokens.length, 0);
    coming = handled(nextBatch());
    const rows = await clock.measure("compute", () =>
      context.features({
        sequences: batch.map(({ tokens }) => tokens),
        layers: form.layers,
        ...(form.point && { point: form.point }),
        ...(form.target && { target: form.target }),
        rows: form.rows === "response" ? "mean" : form.rows,
        ...(form.rows !== "all" && { starts: Int32Array.from(batch, ({ start }) => start) }),
        ...(signal === undefined ? {} : { signal }),
      }),
    );
    for (const [layer, { excluded }] of isMean(form) ? rows : []) {
      made.excluded.set(layer, sumOfExcluded([made.excluded.get(layer) ?? excludesNothing, excluded]));
    }
    await written;
    written = handled(writer.add(batch, rows));
    done += tokens;
    onTokens(done);
  }
  await clock.measure("artifact", () => written);
}

function outliersNote(excluded: Made["excluded"]): string {
  const most = Math.max(0, ...[...excluded.values()].map(({ outliers }) => outliers));
  return most === 0
    ? ""
    : `Means exclude up to ${most} activations per layer whose norm is above ten times their text's median.`;
}

function isMean({ rows }: RowForm): boolean {
  return rows === "mean" || rows === "response";
}

/** A promise that is awaited later: suppresses the unhandled rejection until then. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

function fullDisk(error: unknown, { input, plan }: Extraction, number: number): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined || !["ENOSPC", "EDQUOT", "EFBIG"].includes(code)) return error;
  const { out } = input.config;
  const kept =
    out === undefined
      ? "Set out to a folder to keep finished files."
      : `The ${number} files before it are in ${out}; run the same extraction again to resume.`;
  return new UserError(
    `The disk is full (${code}) at file ${number + 1} of ${plan.shards.length}, which needs ${bytesText(plan.shards[number]?.bytes ?? 0)}. ${kept}`,
  );
}

function describe(
  { input, plan, form, part, source, sha256 }: Extraction,
  { kept, computed, seconds, excluded }: Made,
): Findings<ExtractResult> {
  const { config, model } = input;
  const planOnly = config.plan === true;
  return {
    folder: config.out ?? null,
    index: planOnly ? null : indexName(part),
    data: { name: source.name, sha256 },
    layers: config.layers,
    ...(form.point && { point: form.point }),
    ...(form.target && { target: form.target }),
    ...{ hidden: form.hidden, rows: form.rows, dtype: form.dtype, shard: [...part] },
    ...{ texts: plan.texts, cut_texts: plan.cut_texts, tokens: plan.tokens, row_count: plan.rows },
    ...{ bytes: plan.bytes, files: plan.shards.length, kept_files: kept },
    tokens_per_second: computed > 0 ? computed / seconds : null,
    ...(isMean(form) &&
      computed > 0 && {
        excluded: config.layers.map((layer) => ({ layer, ...(excluded.get(layer) ?? excludesNothing) })),
      }),
    note: [
      planOnly ? "This is only a plan: nothing was computed or written." : "",
      form.rows === "mean" && skippedIn(model) > 0 ? "Means exclude BOS tokens." : "",
      outliersNote(excluded),
      form.rows === "response" ? "Activations are means over the tokens after each prompt." : "",
      form.rows === "all" && skippedIn(model) > 0
        ? "The first activation of each text is that of its BOS token, whose norm differs strongly from other tokens'."
        : "",
    ]
      .filter((part) => part !== "")
      .join(" "),
  };
}

export default {
  run: extract,
} satisfies Run<"extract">;
