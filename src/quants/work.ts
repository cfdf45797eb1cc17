import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { CompletedJob } from "../client/index.js";
import { runJob } from "../client/run-job.js";
import { limits } from "../contracts/limits.js";
import { taplineHome } from "../files/home.js";
import { canonicalHash } from "../formats/canonical-json.js";
import { Vectors } from "../library/index.js";
import { runApart } from "./apart.js";
import type { OpenedFile } from "./files.js";
import type { SpeedLine, TextLine } from "./measure.js";
import { type QuantsOptions, type QuantsRequest, resamples } from "./request.js";
import type { QuantsForm, Survival, Transfer } from "./result.js";
import type { Steps } from "./steps.js";
import { type ActiveFeatures, readActiveFeatures, survivalOf } from "./survival.js";

/** A form counts a feature that is active on this many tokens of the reference. */
const leastTokens = 3;

type Drift = CompletedJob<"drift">;
type Features = CompletedJob<"features">;

/** The measurements, each of which is a finished part of the folder or is made now. */
export class Work {
  readonly #jobs = new Map<string, CompletedJob>();
  /** The reference's features: every form is compared with them. */
  #reference?: Promise<ActiveFeatures>;
  #done = 0;
  readonly #all: number;
  readonly #chunks: number[][];

  constructor(
    private readonly request: QuantsRequest,
    private readonly options: QuantsOptions,
    private readonly steps: Steps,
    layers: readonly number[],
    forms: number,
  ) {
    const most = limits.layers;
    this.#chunks = Array.from({ length: Math.ceil(layers.length / most) }, (_, at) =>
      layers.slice(at * most, (at + 1) * most),
    );
    const { dictionary, probe, vector, texts, rounds } = request;
    const perForm =
      texts.length +
      this.#chunks.length +
      Number(dictionary !== undefined) +
      Number(probe !== undefined || vector !== undefined);
    this.#all = forms * perForm + Number(dictionary !== undefined) + rounds * (forms + 1);
  }

  /** KL, agreement and losses, text by text. */
  async texts(reference: OpenedFile, form: OpenedFile): Promise<TextLine[]> {
    const { texts, mostTokens } = this.request;
    const name = partOf(form, "texts.jsonl");
    const known = await this.steps.lines<TextLine>(name);
    this.#done += known.length;
    if (known.length < texts.length) {
      const task = {
        ...{ kind: "texts" as const, reference: reference.path, form: form.path },
        ...{ texts, from: known.length, mostTokens },
      };
      const what = `${form.name}: held-out texts`;
      this.#show(what);
      await this.#apart(task, async (line) => {
        await this.steps.append(name, line);
        known.push(line as TextLine);
        this.#advance(what);
      });
    }
    return known;
  }

  /** Block outputs, features and artefacts: the Lab's drift and features. */
  async inside(
    reference: OpenedFile,
    form: OpenedFile,
  ): Promise<Pick<QuantsForm, "drift" | "survival" | "probe" | "vector">> {
    const { dictionary, probe, vector, texts, examples, seed, mostTokens } = this.request;
    const common = { other: form.path, seed, max_input_tokens: mostTokens };
    const drift: QuantsForm["drift"] = [];
    let survival: Survival | undefined;
    for (const [index, layers] of this.#chunks.entries()) {
      const withDictionary = index === 0 && dictionary !== undefined;
      const { result } = (await this.#job(partOf(form, `drift-${index}.json`), `${form.name}: block drift`, {
        operation: "drift",
        model: reference.path,
        settings: {
          ...{ ...common, layers, examples: texts.map((text) => ({ text })) },
          ...(withDictionary && { dictionary }),
        },
      })) as Drift;
      for (const { layer, cosine, relative_difference } of result.layers) {
        drift.push({ layer, cosine, relative_difference });
      }
      if (withDictionary) survival = await this.#survival(reference, form, result.dictionary!);
    }
    const transfers =
      probe === undefined && vector === undefined
        ? {}
        : await this.#transfers(reference, form, common, examples);
    return { drift, ...(survival && { survival }), ...transfers };
  }

  async #survival(
    reference: OpenedFile,
    form: OpenedFile,
    measured: NonNullable<Drift["result"]["dictionary"]>,
  ): Promise<Survival> {
    const { seed } = this.request;
    const one = await this.#features(reference);
    const two = await this.#features(form);
    const { name, sha256, layer, jaccard, loss_recovered } = measured;
    const first = one.job.result.fidelity.excluded?.bos ? 1 : 0;
    this.#reference ??= readActiveFeatures(one.path);
    const [active, other] = [await this.#reference, await readActiveFeatures(two.path)];
    return {
      ...{ dictionary: name, sha256, layer, jaccard, loss_recovered: loss_recovered?.[1] ?? null },
      ...survivalOf(active, other, { least: leastTokens, first, resamples, seed }),
    };
  }

  async #features(model: OpenedFile): Promise<{ job: Features; path: string }> {
    const { dictionary, texts, mostTokens, seed } = this.request;
    const settings = { dictionary, texts, top: 1, max_input_tokens: mostTokens, seed };
    const path = this.steps.path(partOf(model, "features.npz"));
    const job = (await this.#job(
      partOf(model, "features.json"),
      `${model.name}: features`,
      { operation: "features", model: model.path, settings },
      async ({ id, result }) => {
        await mkdir(dirname(path), { recursive: true });
        const artifact = result.artifacts?.find((each) => each.endsWith(".npz")) as string;
        await this.options.lab.artifact(id, artifact, path, { signal: this.options.signal });
      },
    )) as Features;
    return { job, path };
  }

  async #transfers(
    reference: OpenedFile,
    form: OpenedFile,
    common: object,
    examples: readonly Record<string, unknown>[],
  ): Promise<{ probe?: Transfer; vector?: Transfer }> {
    const { probe, vector } = this.request;
    const own = vector === undefined ? [0] : await new Vectors(taplineHome()).layers(vector);
    const { result } = (await this.#job(partOf(form, "transfer.json"), `${form.name}: probes and vectors`, {
      operation: "drift",
      model: reference.path,
      settings: {
        ...{ ...common, layers: own.slice(0, limits.layers), examples },
        ...(probe !== undefined && { probe }),
        ...(vector !== undefined && { vector }),
      },
    })) as Drift;
    const transfer = (
      { name, sha256, layer, difference }: Pick<Transfer, "name" | "sha256" | "layer" | "difference">,
      [one, two]: readonly [Transfer["reference"], Transfer["form"]],
    ): Transfer => ({ name, sha256, layer, reference: one, form: two, difference });
    return {
      ...(result.probe && { probe: transfer(result.probe, result.probe.auroc) }),
      ...(result.vector && { vector: transfer(result.vector, result.vector.separation) }),
    };
  }

  async speeds(models: readonly OpenedFile[]): Promise<SpeedLine[]> {
    const { rounds, promptTokens, generatedTokens } = this.request;
    const name = `speed-${canonicalHash(models.map(({ fingerprint }) => fingerprint)).slice(0, 12)}.jsonl`;
    const known = await this.steps.lines<SpeedLine>(name);
    this.#done += known.length;
    if (known.length < rounds * models.length) {
      const task = {
        ...{ kind: "speed" as const, models: models.map(({ path }) => path), rounds },
        ...{ from: known.length, promptTokens, generatedTokens },
      };
      this.#show("speed");
      await this.#apart(task, async (line) => {
        await this.steps.append(name, line);
        known.push(line as SpeedLine);
        this.#advance("speed");
      });
    }
    return known;
  }

  async memories(models: readonly OpenedFile[]): Promise<number[]> {
    const bytes: number[] = [];
    for (const { path } of models) {
      await this.#apart({ kind: "memory", model: path }, async (line) => {
        bytes.push((line as { memory: number }).memory);
      });
    }
    return bytes;
  }

  /** A job of the Lab, unless it is finished in the folder. */
  async #job(
    name: string,
    what: string,
    job: Parameters<typeof runJob>[1],
    onDone: (job: CompletedJob) => Promise<void> = async () => {},
  ): Promise<CompletedJob> {
    const { lab, signal } = this.options;
    this.#show(what);
    const made = await this.steps.once(name, async () => {
      const began = performance.now();
      const done = await runJob(lab, job, signal, (stage) => this.#show(`${what}, ${stage}`));
      await onDone(done);
      await this.#took(began);
      return done;
    });
    // The reference's features are read once for all forms.
    if (this.#jobs.has(made.id)) return made;
    this.#jobs.set(made.id, made);
    this.#advance(what);
    return made;
  }

  async #apart(task: Parameters<typeof runApart>[0], onLine: Parameters<typeof runApart>[2]): Promise<void> {
    const began = performance.now();
    await runApart(task, this.options.signal, onLine);
    await this.#took(began);
  }

  #took(began: number): Promise<void> {
    return this.steps.append("seconds.jsonl", (performance.now() - began) / 1000);
  }

  get jobs(): CompletedJob[] {
    return [...this.#jobs.values()];
  }

  async seconds(): Promise<number> {
    return (await this.steps.lines<number>("seconds.jsonl")).reduce((sum, one) => sum + one, 0);
  }

  #advance(what: string): void {
    this.#done++;
    this.#show(what);
  }

  #show(what: string): void {
    this.options.onProgress(what, Math.min(1, this.#done / this.#all));
  }
}

/** A part of a form: forms are told apart by their weights, not by their names. */
const partOf = ({ fingerprint }: OpenedFile, name: string) => join(fingerprint.slice(0, 16), name);
