import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { FeaturesResult } from "../../contracts/index.js";
import type { LabelRequest } from "../../contracts/workbench.js";
import { workbenchLimits } from "../../contracts/workbench-limits.js";
import { labelKey } from "../../findings/label-finding.js";
import { HttpError } from "../../http/index.js";
import { writePrivately } from "../private-file.js";
import { type Services, sentenceOf } from "../services.js";
import type { MachineLabel } from "../wire.js";
import { type AskModel, detect, labelIn, labelQuestion } from "./detection.js";
import { askEndpoint } from "./endpoint.js";
import { excerptsOf, type ReadText } from "./excerpts.js";

/** Labels of features that a model has proposed, in one private file. */
export class FeatureLabels {
  #all: Promise<Map<string, MachineLabel>> | undefined;
  #saving: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly file: string,
    private readonly services: Services,
  ) {}

  /** The labels by `labelKey`. */
  async all(): Promise<Record<string, MachineLabel>> {
    return Object.fromEntries(await this.#read());
  }

  /** Proposes a label from some of a job's texts and tests it on the others. @throws HttpError */
  async propose(asked: LabelRequest, signal: AbortSignal): Promise<MachineLabel> {
    const { job: id, feature, endpoint } = asked;
    const job = await this.services.lab.job(id);
    if (job.operation !== "features" || job.result === undefined) {
      throw new HttpError(
        409,
        `Job ${id.slice(0, 8)} has no features; it is ${job.operation}, ${job.status}.`,
      );
    }
    const result = job.result as FeaturesResult;
    const { shown, heldOut } = excerptsOf(await this.#texts(id, result, feature));
    const active = heldOut.filter((one) => one.active).length;
    if (shown.length === 0 || active === 0 || active === heldOut.length) {
      throw new HttpError(
        409,
        `A label needs at least two texts with the feature and one without it, got ${shown.length + active} and ${heldOut.length - active}. Run the job on more texts.`,
      );
    }
    const ask = endpoint === undefined ? this.#askServed(signal) : askEndpoint(endpoint, signal);
    const label = labelIn(await ask(labelQuestion(shown), 32));
    if (label === "") throw new HttpError(502, "The model proposed no label.");
    const found: MachineLabel = {
      label,
      model: endpoint?.model ?? this.services.server.model ?? "the served model",
      host: endpoint === undefined ? null : new URL(endpoint.url).host,
      proposedFrom: shown.length,
      detection: await detect(label, heldOut, ask),
      created: Date.now() / 1000,
    };
    (await this.#read()).set(labelKey(result.dictionary.sha256, feature), found);
    await this.#save();
    return found;
  }

  /** @throws HttpError 404 */
  async remove(sha256: string, feature: number): Promise<void> {
    const all = await this.#read();
    if (!all.delete(labelKey(sha256, feature)))
      throw new HttpError(404, `Feature ${feature} has no proposed label.`);
    await this.#save();
  }

  settled(): Promise<unknown> {
    return this.#saving;
  }

  /** The job's texts with the feature's activation at every token. */
  async #texts(id: string, { texts }: FeaturesResult, feature: number): Promise<ReadText[]> {
    const arrays = await this.services.lab.arrays(id, "features.npz");
    const numbers = (name: string) => {
      const found = arrays.get(name)?.data;
      if (found === undefined) throw new HttpError(502, `features.npz has no ${name}.`);
      return found as ArrayLike<number>;
    };
    const [pointers, indices, values] = [numbers("pointers"), numbers("indices"), numbers("values")];
    let row = 0;
    return texts.map(({ tokens }) => ({
      tokens,
      activations: tokens.map(() => {
        const [from, to] = [pointers[row] as number, pointers[row + 1] as number];
        row += 1;
        for (let at = from; at < to; at += 1) if (indices[at] === feature) return values[at] as number;
        return 0;
      }),
    }));
  }

  #askServed(signal: AbortSignal): AskModel {
    return async (content, max_tokens) => {
      const request = { temperature: 0, max_tokens, chat_template_kwargs: { enable_thinking: false } };
      try {
        const messages = [{ role: "user" as const, content }];
        const [answer] = await this.services.model.answers(messages, { request, signal });
        return answer?.text ?? "";
      } catch (error) {
        throw new HttpError(502, `The served model did not answer: ${sentenceOf(error)}`);
      }
    };
  }

  /** One map for all readers, also if the first ones ask at the same time. */
  #read(): Promise<Map<string, MachineLabel>> {
    this.#all ??= readFile(this.file, "utf8").then(
      (text) => new Map(Object.entries(JSON.parse(text) as Record<string, MachineLabel>)),
      () => new Map(),
    );
    return this.#all;
  }

  async #save(): Promise<void> {
    const all = await this.#read();
    const oldestFirst = [...all].sort(([, a], [, b]) => a.created - b.created);
    for (const [key] of oldestFirst.slice(0, -workbenchLimits.labels)) all.delete(key);
    const text = JSON.stringify(Object.fromEntries(oldestFirst.slice(-workbenchLimits.labels)));
    this.#saving = this.#saving
      .then(async () => {
        await mkdir(dirname(this.file), { recursive: true, mode: 0o700 });
        await writePrivately(this.file, text);
      })
      .catch((error: Error) => process.stderr.write(`tapline: could not save labels: ${error.message}\n`));
    await this.#saving;
  }
}
