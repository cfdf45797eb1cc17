import { mkdir, rename, rm, stat } from "node:fs/promises";
import { availableParallelism, cpus } from "node:os";
import { basename, join } from "node:path";
import type { CompletedJob } from "../client/index.js";
import { UserError } from "../contracts/user-error.js";
import { version } from "../contracts/version.js";
import { absent } from "../files/absent.js";
import { canonicalHash } from "../formats/canonical-json.js";
import { backendInfo, quantise } from "../native/index.js";
import { circuitsOf } from "./circuit-work.js";
import { speedFigures, textFigures } from "./figures.js";
import { distinguish, type OpenedFile, openFile } from "./files.js";
import { Parts } from "./parts.js";
import { type QuantsOptions, type QuantsRequest, resamples } from "./request.js";
import type { Quants, QuantsForm } from "./result.js";
import { describeRounded, roundingName, writeRounded } from "./rounding.js";
import { Steps } from "./steps.js";
import { Work } from "./work.js";

export interface QuantsRun {
  quants: Quants;
  /** The Lab's jobs, for a study. */
  jobs: CompletedJob[];
}

/**
 * Measures what each form of a model changes, part by part; parts that are finished in the folder are not measured again.
 * @throws UserError, TaplineError, the signal's reason
 */
export async function runQuants(request: QuantsRequest, options: QuantsOptions): Promise<QuantsRun> {
  const { folder } = options;
  const steps = new Steps(folder);
  const reference = { ...(await openFile(request.reference)), name: "reference" };
  await sameRequest(steps, request, reference);
  const made = await makeForms(request, reference, steps, options);
  const given = await Promise.all(request.forms.map((form) => openFile(form)));
  const forms = distinguish([...given, ...made]);
  if (forms.length === 0) throw new UserError("No forms were given: name files, or use --make.");
  const layers = request.layers ?? Array.from({ length: reference.blocks }, (_, layer) => layer);
  const parts = new Parts(steps, options);
  const work = new Work(request, parts, layers, forms.length);
  const found: Array<Omit<QuantsForm, "memory" | "speed">> = [];
  let perplexity: Quants["reference"]["perplexity"] | undefined;
  let tokens = 0;
  let refused: string | undefined;
  for (const form of forms) {
    const lines = await work.texts(reference, form);
    const { reference: ofReference, ...figures } = textFigures(lines, request.seed);
    perplexity ??= ofReference;
    tokens = lines.reduce((sum, line) => sum + line.tokens, 0);
    const inside = await work.inside(reference, form);
    const circuits = await circuitsOf(request, parts, reference, form);
    if (typeof circuits === "string") refused = circuits;
    found.push({
      ...{ ...publicFile(form), ...figures, ...inside },
      ...(typeof circuits === "object" && { circuits }),
    });
  }
  const speeds = await work.speeds([reference, ...forms]);
  const memory = await work.memories([reference, ...forms]);
  const { backend, llamaCpp } = backendInfo();
  const quants: Omit<Quants, "sha256"> = {
    ...{ kind: "tapline quants", schema_version: 1, tapline: version, created: Date.now() / 1000 },
    machine: {
      ...{ processor: cpus()[0]?.model.trim() ?? "unknown", threads: availableParallelism() },
      ...{ backend, llama_cpp: llamaCpp },
    },
    reference: {
      ...{ ...publicFile(reference), architecture: reference.architecture },
      ...{ memory: memory[0] as number, speed: speedFigures(speeds, 0, request.seed) },
      perplexity: perplexity as NonNullable<typeof perplexity>,
    },
    forms: found.map((form, index) => ({
      ...form,
      memory: memory[index + 1] as number,
      speed: speedFigures(speeds, index + 1, request.seed),
    })),
    ...(refused !== undefined && { no_circuits: refused }),
    settings: {
      ...{ texts: request.texts.length, tokens, texts_sha256: canonicalHash(request.texts) },
      ...{
        examples: request.examples.length,
        prompts: request.prompts.length,
        layers: [...layers],
        seed: request.seed,
        resamples,
      },
      ...{ rounds: request.rounds, prompt_tokens: request.promptTokens },
      generated_tokens: request.generatedTokens,
    },
    seconds: await parts.seconds(),
  };
  if (!request.keepForms) await rm(steps.path("forms"), { recursive: true, force: true });
  return { quants: { ...quants, sha256: canonicalHash(quants) }, jobs: parts.jobs };
}

function publicFile({ path: _, architecture: __, blocks: ___, ...file }: OpenedFile) {
  return file;
}

/** @throws UserError if the folder has the parts of a different run */
async function sameRequest(steps: Steps, request: QuantsRequest, { fingerprint }: OpenedFile): Promise<void> {
  const { reference: _, forms: __, make: ___, round: ____, keepForms: _____, ...settings } = request;
  const own = canonicalHash({ ...settings, layers: settings.layers ?? null, fingerprint });
  const known = await steps.once("request.json", async () => own);
  if (known === own) return;
  throw new UserError(
    `${steps.folder} has parts of a run with a different model or settings; use another --out, or remove it.`,
  );
}

/** Writes the forms of the reference that the folder does not have. */
async function makeForms(
  { make, round, reference: model }: QuantsRequest,
  reference: OpenedFile,
  steps: Steps,
  { signal, onProgress }: Pick<QuantsOptions, "signal" | "onProgress">,
): Promise<OpenedFile[]> {
  const made: OpenedFile[] = [];
  const write = async (form: string, writer: (path: string) => Promise<void>) => {
    const to = steps.path(join("forms", `${basename(reference.path, ".gguf") || model}-${form}.gguf`));
    if ((await stat(to).catch(absent)) !== undefined) return openFile(to); // it got its name when it was complete
    signal.throwIfAborted();
    onProgress(`making ${form}`, 0);
    await mkdir(steps.path("forms"), { recursive: true });
    const part = `${to}.part`;
    await writer(part);
    await rename(part, to);
    return openFile(to);
  };
  for (const form of make) {
    made.push(await write(form, (to) => quantise({ from: reference.path, to, form })));
  }
  for (const rounding of round) {
    const file = await write(roundingName(rounding), (to) =>
      writeRounded(reference.path, to, rounding, signal),
    );
    made.push(await describeRounded(file, rounding));
  }
  return made;
}
