import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import type { CompletedJob } from "../client/index.js";
import { limits } from "../contracts/limits.js";
import { taplineHome } from "../files/home.js";
import { canonicalHash } from "../formats/canonical-json.js";
import { Vectors } from "../library/index.js";
import type { OpenedFile } from "./files.js";
import type { SpeedLine, TextLine } from "./measure.js";
import { type Parts, partOf } from "./parts.js";
import { type QuantsRequest, resamples } from "./request.js";
import type { QuantsForm, Survival, Transfer } from "./result.js";
import { type ActiveFeatures, readActiveFeatures, survivalOf } from "./survival.js";

/** A form counts a feature that is active on this many tokens of the reference. */
const leastTokens = 3;

type Drift = CompletedJob<"drift">;
type Features = CompletedJob<"features">;

/** The measurements, each of which is a finished part of the folder or is made now. */
export class Work {
  /** The reference's features by dictionary: every form is compared with them. */
  readonly #references = new Map<string, Promise<ActiveFeatures>>();
  readonly #chunks: number[][];

  constructor(
    private readonly request: QuantsRequest,
    private readonly parts: Parts,
    layers: readonly number[],
    forms: number,
  ) {
    const most = limits.layers;
    this.#chunks = Array.from({ length: Math.ceil(layers.length / most) }, (_, at) =>
      layers.slice(at * most, (at + 1) * most),
    );
    const { probe, vector, texts, prompts, rounds } = request;
    const forAll = dictionariesOf(request).length + prompts.length;
    const perForm =
      texts.length + this.#chunks.length + forAll + Number(probe !== undefined || vector !== undefined);
    parts.all = forms * perForm + forAll + rounds * (forms + 1);
  }

  /** KL, agreement and losses, text by text. */
  async texts(reference: OpenedFile, form: OpenedFile): Promise<TextLine[]> {
    const { texts, mostTokens } = this.request;
    const name = partOf(form, "texts.jsonl");
    const known = await this.parts.steps.lines<TextLine>(name);
    this.parts.done += known.length;
    if (known.length < texts.length) {
      const task = {
        ...{ kind: "texts" as const, reference: reference.path, form: form.path },
        ...{ texts, from: known.length, mostTokens },
      };
      const what = `${form.name}: held-out texts`;
      this.parts.show(what);
      await this.parts.apart(task, async (line) => {
        await this.parts.steps.append(name, line);
        known.push(line as TextLine);
        this.parts.advance(what);
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
      const { result } = (await this.parts.job(
        partOf(form, `drift-${index}.json`),
        `${form.name}: block drift`,
        {
          operation: "drift",
          model: reference.path,
          settings: {
            ...{ ...common, layers, examples: texts.map((text) => ({ text })) },
            ...(withDictionary && { dictionary }),
          },
        },
      )) as Drift;
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
    const { control } = this.request;
    const { jaccard, loss_recovered } = measured;
    const own = await this.#survivalOf(reference, form, measured.name);
    const { dead: _, ...second } =
      control === undefined ? { dead: [] } : await this.#survivalOf(reference, form, control);
    return {
      ...{ ...own, jaccard, loss_recovered: loss_recovered?.[1] ?? null },
      ...(control !== undefined && { control: second as NonNullable<Survival["control"]> }),
    };
  }

  async #survivalOf(reference: OpenedFile, form: OpenedFile, dictionary: string) {
    const one = await this.#features(reference, dictionary);
    const two = await this.#features(form, dictionary);
    const { fidelity, dictionary: stored, layer } = one.job.result;
    const first = fidelity.excluded?.bos ? 1 : 0;
    const known = this.#references.get(dictionary) ?? readActiveFeatures(one.path);
    this.#references.set(dictionary, known);
    const [active, other] = [await known, await readActiveFeatures(two.path)];
    return {
      ...{ dictionary: stored.name, sha256: stored.sha256, layer },
      ...survivalOf(active, other, { least: leastTokens, first, resamples, seed: this.request.seed }),
    };
  }

  async #features(model: OpenedFile, dictionary: string): Promise<{ job: Features; path: string }> {
    const { control, texts, mostTokens, seed } = this.request;
    const settings = { dictionary, texts, top: 1, max_input_tokens: mostTokens, seed };
    const part = dictionary === control ? "features-control" : "features";
    const path = this.parts.steps.path(partOf(model, `${part}.npz`));
    const job = (await this.parts.job(
      partOf(model, `${part}.json`),
      `${model.name}: features`,
      { operation: "features", model: model.path, settings },
      async ({ id, result }) => {
        await mkdir(dirname(path), { recursive: true });
        const artifact = result.artifacts?.find((each) => each.endsWith(".npz")) as string;
        await this.parts.options.lab.artifact(id, artifact, path, { signal: this.parts.options.signal });
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
    const { result } = (await this.parts.job(
      partOf(form, "transfer.json"),
      `${form.name}: probes and vectors`,
      {
        operation: "drift",
        model: reference.path,
        settings: {
          ...{ ...common, layers: own.slice(0, limits.layers), examples },
          ...(probe !== undefined && { probe }),
          ...(vector !== undefined && { vector }),
        },
      },
    )) as Drift;
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
    const known = await this.parts.steps.lines<SpeedLine>(name);
    this.parts.done += known.length;
    if (known.length < rounds * models.length) {
      const task = {
        ...{ kind: "speed" as const, models: models.map(({ path }) => path), rounds },
        ...{ from: known.length, promptTokens, generatedTokens },
      };
      this.parts.show("speed");
      await this.parts.apart(task, async (line) => {
        await this.parts.steps.append(name, line);
        known.push(line as SpeedLine);
        this.parts.advance("speed");
      });
    }
    return known;
  }

  async memories(models: readonly OpenedFile[]): Promise<number[]> {
    const bytes: number[] = [];
    for (const { path } of models) {
      await this.parts.apart({ kind: "memory", model: path }, async (line) => {
        bytes.push((line as { memory: number }).memory);
      });
    }
    return bytes;
  }
}

function dictionariesOf({ dictionary, control }: QuantsRequest): string[] {
  return [dictionary, control].filter((name) => name !== undefined);
}
