import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Capabilities } from "../../contracts/index.js";
import type { StoredVector } from "../../contracts/library.js";
import { randomVector } from "../../findings/random.js";
import { HttpError } from "../../http/index.js";
import type { Events } from "../events.js";
import { writePrivately } from "../private-file.js";
import { type Services, sentenceOf } from "../services.js";
import type { ContrastReady, ContrastStatus } from "../wire.js";
import { measureDirection, usualAnswers } from "./measure.js";
import { type ContrastSet, readContrastSets } from "./sets.js";

/** Seed of the random control. */
const seed = 7;
/** Depths of the layers that are tried, the middle one first. */
const depths = [0.47, 0.35, 0.6];

/** The contrast sets of this package on the served model: computed on first use, then saved. */
export class Contrasts {
  readonly #sets: Promise<ContrastSet[]>;
  /** By fingerprint of the model and name of the set. */
  readonly #states = new Map<string, Partial<ContrastStatus> & Pick<ContrastStatus, "state">>();
  readonly #stopping = new AbortController();
  /** Directions are made one after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly services: Services,
    private readonly events: Events,
    private readonly folder: string,
    sets?: Promise<ContrastSet[]>,
  ) {
    this.#sets = sets ?? readContrastSets();
    this.#sets.catch(() => {});
  }

  /** All sets and what is known of them on the served model. @throws TaplineError */
  async list(): Promise<ContrastStatus[]> {
    const served = await this.services.model.capabilities();
    const vectors = await this.services.model.vectors();
    return this.#listOf(served, new Map(vectors.map((vector) => [vector.name, vector])));
  }

  /** Starts to compute a set's direction on the served model, unless that is under way or done. @throws HttpError 404, 503 */
  async make(name: string): Promise<ContrastStatus[]> {
    const set = (await this.#sets).find((one) => one.name === name);
    if (set === undefined) throw new HttpError(404, `There is no contrast set ${name.slice(0, 32)}.`);
    const served = await this.services.model.capabilities();
    if (typeof served.fingerprint !== "string" || served.n_layer === null || served.n_embd === null) {
      throw new HttpError(503, "The server has no model loaded that can be steered.");
    }
    const all = await this.list();
    const known = all.find((one) => one.name === name)?.state;
    if (known === "ready" || known === "making") return all;
    this.#set(served, name, { state: "making", done: 0, total: usualAnswers });
    this.#turn = this.#turn.then(() => this.#make(set, served));
    return this.list();
  }

  /** The random control of a direction that this class has made; undefined for other vectors. */
  controlOf(vector: string): string | undefined {
    return /^contrast-[a-z]+-[0-9a-f]{8}$/.test(vector) ? `${vector}-random` : undefined;
  }

  /** Whether a vector is such a control, which is of no use by itself. */
  isControl(vector: string): boolean {
    return this.controlOf(vector.replace(/-random$/, "")) === vector;
  }

  close(): void {
    this.#stopping.abort();
  }

  async #listOf(served: Capabilities, vectors: ReadonlyMap<string, StoredVector>): Promise<ContrastStatus[]> {
    return Promise.all(
      (await this.#sets).map(async (set) => {
        const { name, title, about, expected, questions, openings } = set;
        const shown = {
          name,
          title,
          about,
          expected,
          example: (served.chat_template === false ? openings : questions).at(-1) as string,
        };
        const state = this.#states.get(keyOf(served, name));
        if (state !== undefined && state.state !== "ready") return { ...shown, ...state };
        const ready = state?.ready ?? (await this.#read(served, name));
        const isThere = ready !== undefined && vectors.has(ready.vector) && vectors.has(ready.random);
        return { ...shown, ...(isThere ? { state: "ready" as const, ready } : { state: "unused" as const }) };
      }),
    );
  }

  async #make(set: ContrastSet, served: Capabilities): Promise<void> {
    const { name } = set;
    const { signal } = this.#stopping;
    let done = 0;
    try {
      const ready = await this.#measured(set, served, () => {
        done += 1;
        this.#set(served, name, { state: "making", done, total: Math.max(done, usualAnswers) });
        this.#publish();
      });
      if (signal.aborted) return;
      await this.#write(served, name, ready);
      this.#set(served, name, { state: "ready", ready });
    } catch (error) {
      if (signal.aborted) return;
      this.#set(served, name, { state: "failed", error: sentenceOf(error) });
    }
    this.#publish();
    this.events.publish({ type: "library" });
  }

  async #measured(set: ContrastSet, served: Capabilities, onAnswer: () => void): Promise<ContrastReady> {
    const { model } = this.services;
    const { signal } = this.#stopping;
    const blocks = served.n_layer as number;
    const layers = [...new Set(depths.map((depth) => Math.min(blocks - 1, Math.floor(blocks * depth))))];
    const vector = vectorOf(served, set.name);
    const random = `${vector}-random`;
    const { positive, negative } = set;
    const made = await model.makeVector(
      { name: vector, positive, negative, layers: layers.toSorted((a, b) => a - b), position: "mean" },
      { signal },
    );
    const controls = made.layers.map(({ layer, length }) => [
      layer,
      randomVector(served.n_embd as number, length, seed + layer),
    ]);
    await model.putVector(random, Object.fromEntries(controls), { signal });
    const raw = served.chat_template === false;
    const found = await measureDirection({
      ...{ services: this.services, set, vector, random, layers, raw, signal, onAnswer },
    });
    const layer = found?.layer ?? (layers[0] as number);
    const { separation = null, shuffled_separation = null } =
      made.layers.find((one) => one.layer === layer) ?? {};
    return {
      ...{ vector, random, layer, separation, shuffled: shuffled_separation },
      range: found?.range ?? null,
      measured: found?.measured ?? [],
      control: found?.control ?? null,
    };
  }

  #set(
    served: Capabilities,
    name: string,
    state: Partial<ContrastStatus> & Pick<ContrastStatus, "state">,
  ): void {
    this.#states.set(keyOf(served, name), state);
  }

  /** Sends the list to every page. */
  #publish(): void {
    this.list().then(
      (contrasts) => this.events.publish({ type: "contrasts", contrasts }),
      () => {},
    );
  }

  #file(served: Capabilities, name: string): string {
    return join(this.folder, `${keyOf(served, name)}.json`);
  }

  async #read(served: Capabilities, name: string): Promise<ContrastReady | undefined> {
    try {
      return JSON.parse(await readFile(this.#file(served, name), "utf8")) as ContrastReady;
    } catch {
      return undefined;
    }
  }

  async #write(served: Capabilities, name: string, ready: ContrastReady): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    await writePrivately(this.#file(served, name), JSON.stringify(ready));
  }
}

function keyOf({ fingerprint }: Capabilities, name: string): string {
  return `${name}-${String(fingerprint).replace(/\W/g, "").slice(0, 32)}`;
}

/** A set's direction on a model: other models have others under their own names. */
function vectorOf({ fingerprint }: Capabilities, name: string): string {
  return `contrast-${name}-${String(fingerprint).slice(0, 8)}`;
}
