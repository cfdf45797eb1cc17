import { setTimeout as sleep } from "node:timers/promises";
import type { Static } from "typebox";
import type {
  DriftExample,
  Job,
  JobOf,
  JobSummary,
  LabHealth,
  Operation,
  ProbeExample,
  ResultOf,
  SaeExample,
  SubmissionOf,
} from "../contracts/index.js";
import type { DictionaryRequest, LensRequest, StoredDictionary, StoredLens } from "../contracts/library.js";
import { limits, ports } from "../contracts/limits.js";
import type { ArtifactArray } from "./arrays.js";
import { TaplineError, TimeoutError } from "./errors.js";
import { type CallOptions, Transport } from "./transport.js";
import { writeWhole } from "./whole-file.js";

/** A job that completed, with the configuration and the result of its operation. */
export type CompletedJob<O extends Operation = Operation> = {
  [K in O]: Omit<Job, "operation" | "config" | "result" | "status"> & {
    operation: K;
    status: "completed";
    config: SubmissionOf<K>;
    result: ResultOf<K>;
  };
}[O];

/** The fields of a submission beside operation, model and what a shortcut takes as its own argument. */
export type Settings<O extends Operation, Taken extends string = never> = Omit<
  SubmissionOf<O>,
  "operation" | "model" | Taken
>;

export interface WaitOptions extends CallOptions {
  /** Overall deadline in milliseconds; the worker's own (30 minutes) unless told otherwise. */
  timeoutMs?: number;
  /** Milliseconds between two looks; 500 unless told otherwise. */
  intervalMs?: number;
  /** Hears of the job at every look. */
  onProgress?: (job: Job) => void;
}

/** The isolated research service: experiments that run in a worker of their own and stay on disk. */
export class Lab {
  readonly #http: Transport;
  /** For what may be downloaded first. */
  readonly #adding: Transport;

  /**
   * @param baseUrl origin of the Lab, without /lab/v1
   * @param options.timeoutMs longest silence within one request: 10 s unless told otherwise, an hour where a dictionary
   *   may be downloaded
   */
  constructor(baseUrl = `http://127.0.0.1:${ports.lab}`, options: { timeoutMs?: number } = {}) {
    const open = (usual: number) => new Transport(baseUrl, options.timeoutMs ?? usual, { service: "lab" });
    this.#http = open(10_000);
    this.#adding = open(3_600_000);
  }

  /** What the service can do, its limits, and what it is doing. */
  health(options: CallOptions = {}): Promise<LabHealth> {
    return this.#http.json("/lab/v1/health", options);
  }

  /** The service's OpenAPI description. */
  schema(options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.#http.json("/lab/v1/openapi.json", options);
  }

  /** The newest jobs, newest first. */
  async jobs(options: CallOptions = {}): Promise<JobSummary[]> {
    return (await this.#http.json<{ jobs: JobSummary[] }>("/lab/v1/jobs", options)).jobs;
  }

  /** Hands an experiment in. It is accepted, not done: {@link wait} for it. */
  submit<O extends Operation>(
    operation: O,
    model: string,
    settings: Settings<O>,
    options: CallOptions = {},
  ): Promise<JobOf<O>> {
    const body = { operation, model, ...settings };
    return this.#http.json("/lab/v1/jobs", { ...options, method: "POST", body });
  }

  inspect(
    model: string,
    prompt: string,
    settings: Settings<"inspect", "prompt"> = {},
    options: CallOptions = {},
  ) {
    return this.submit("inspect", model, { prompt, ...settings }, options);
  }

  /** @param prompt none where `settings.prompts` lists several */
  compare(
    model: string,
    prompt: string | undefined,
    settings: Settings<"compare", "prompt"> = {},
    options: CallOptions = {},
  ) {
    return this.submit("compare", model, { prompt, ...settings }, options);
  }

  probe(
    model: string,
    examples: Static<typeof ProbeExample>[],
    settings: Settings<"probe", "examples"> = {},
    options: CallOptions = {},
  ) {
    return this.submit("probe", model, { examples, ...settings }, options);
  }

  /** @param examples none where `settings.from` names an extraction's folder on the service's machine */
  sae(
    model: string,
    examples: Static<typeof SaeExample>[] | undefined,
    settings: Settings<"sae", "examples"> = {},
    options: CallOptions = {},
  ) {
    return this.submit("sae", model, { examples, ...settings }, options);
  }

  /** Reads texts through a dictionary that is kept by name. */
  features(
    model: string,
    dictionary: string,
    texts: string[],
    settings: Settings<"features", "dictionary" | "texts" | "prompt"> = {},
    options: CallOptions = {},
  ) {
    return this.submit("features", model, { dictionary, texts, ...settings }, options);
  }

  /**
   * Writes the block outputs of a data set to disk.
   * @param settings.data a .txt or .jsonl file on the service's machine, in place of `examples`
   * @param settings.out a folder there; without it the files are artifacts
   */
  extract(model: string, settings: Settings<"extract">, options: CallOptions = {}) {
    return this.submit("extract", model, settings, options);
  }

  /** What changes between two models of one architecture, on the same examples. */
  drift(
    model: string,
    other: string,
    examples: Static<typeof DriftExample>[],
    settings: Settings<"drift", "other" | "examples"> = {},
    options: CallOptions = {},
  ) {
    return this.submit("drift", model, { other, examples, ...settings }, options);
  }

  /** Where does it happen: states of one prompt in the run of another, for each layer and token. */
  patchSweep(
    model: string,
    clean: string,
    corrupted: string,
    settings: Settings<"patch_sweep", "clean" | "corrupted" | "pairs"> = {},
    options: CallOptions = {},
  ) {
    return this.submit("patch_sweep", model, { clean, corrupted, ...settings }, options);
  }

  /**
   * Block outputs in words: a row of `prompt` at `layer` stands in the place of a token's embedding in a prompt of another
   * model, which says what it is.
   * @param template that model's prompt, with `marker`, one of its tokens, in the row's place
   */
  explain(
    model: string,
    prompt: string,
    { layer, template, marker, ...settings }: Settings<"explain", "prompt">,
    options: CallOptions = {},
  ) {
    return this.submit("explain", model, { prompt, layer, template, marker, ...settings }, options);
  }

  /** The sparse dictionaries that are kept by name. */
  async dictionaries(options: CallOptions = {}): Promise<StoredDictionary[]> {
    const { dictionaries } = await this.#http.json<{ dictionaries: StoredDictionary[] }>(
      "/lab/dictionaries",
      options,
    );
    return dictionaries;
  }

  /** One dictionary. @throws TaplineError where there is none of that name */
  dictionary(name: string, options: CallOptions = {}): Promise<StoredDictionary> {
    return this.#http.json(dictionaryPath(name), options);
  }

  /**
   * Keeps a published sparse dictionary under a name, in place of one that had it.
   * @param from its folder or file of weights on the service's machine, or owner/name/path of the hub, which is
   *   downloaded first
   */
  addDictionary(
    name: string,
    from: string,
    settings: Omit<DictionaryRequest, "from"> = {},
    options: CallOptions = {},
  ): Promise<StoredDictionary> {
    const body = { from, ...settings };
    return this.#adding.json(dictionaryPath(name), { ...options, method: "PUT", body });
  }

  /** Forgets a dictionary. @throws TaplineError where there is none of that name */
  async removeDictionary(name: string, options: CallOptions = {}): Promise<void> {
    await this.#http.json(dictionaryPath(name), { ...options, method: "DELETE" });
  }

  /** The lenses that are kept by name. */
  async lenses(options: CallOptions = {}): Promise<StoredLens[]> {
    return (await this.#http.json<{ lenses: StoredLens[] }>("/lab/lenses", options)).lenses;
  }

  /** One lens. @throws TaplineError where there is none of that name */
  lens(name: string, options: CallOptions = {}): Promise<StoredLens> {
    return this.#http.json(lensPath(name), options);
  }

  /**
   * Keeps a Jacobian or tuned lens under a name, in place of one that had it.
   * @param from its folder or file of weights on the service's machine, owner/name/path of the hub, which is downloaded
   *   first, or `demo`, the embedded model's
   */
  addLens(
    name: string,
    from: string,
    settings: Omit<LensRequest, "from"> = {},
    options: CallOptions = {},
  ): Promise<StoredLens> {
    return this.#adding.json(lensPath(name), { ...options, method: "PUT", body: { from, ...settings } });
  }

  /** Forgets a lens. @throws TaplineError where there is none of that name */
  async removeLens(name: string, options: CallOptions = {}): Promise<void> {
    await this.#http.json(lensPath(name), { ...options, method: "DELETE" });
  }

  /** The whole job. */
  job(id: string, options: CallOptions = {}): Promise<Job> {
    return this.#http.json(jobPath(id), options);
  }

  /**
   * Waits until a job has completed. Given the job as submitted, its result has that operation's type.
   * @throws TaplineError when it failed, was cancelled or interrupted; TimeoutError on the deadline, which does
   * not cancel the job
   */
  async wait<O extends Operation = Operation>(
    job: string | JobOf<O>,
    options: WaitOptions = {},
  ): Promise<CompletedJob<O>> {
    const {
      timeoutMs = limits.worker_deadline_seconds * 1000,
      intervalMs = 500,
      signal,
      onProgress,
    } = options;
    const id = typeof job === "string" ? job : job.id;
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const seen = await this.job(id, { signal });
      onProgress?.(seen);
      if (seen.status === "completed") return seen as CompletedJob<O>;
      if (seen.status !== "queued" && seen.status !== "running") {
        throw new TaplineError(seen.error ?? `Job ${id} was ${seen.status}.`);
      }
      const left = deadline - performance.now();
      if (left <= 0) throw new TimeoutError(`Job ${id} is still ${seen.status} after ${timeoutMs / 1000} s.`);
      await sleep(Math.min(intervalMs, left), undefined, { signal }).catch((error) => {
        throw signal?.aborted ? signal.reason : error;
      });
    }
  }

  /** Stops a job's worker; a finished job stays as it is. */
  cancel(id: string, options: CallOptions = {}): Promise<Job> {
    return this.#http.json(`${jobPath(id)}/cancel`, { ...options, method: "POST", body: {} });
  }

  /**
   * The arrays of an .npz artifact that the job lists, by name: `layer_<n>` of activations.npz [1, tokens, hidden].
   * @throws TaplineError where there is no such artifact, or it holds no arrays
   */
  async arrays(id: string, name: string, options: CallOptions = {}): Promise<Map<string, ArtifactArray>> {
    const file = await this.#http.bytes(artifactPath(id, name), options);
    const { readArrays } = await import("./arrays.js");
    return readArrays(file);
  }

  /**
   * Downloads an artifact that the job lists. The destination is overwritten, in one step and only by a
   * complete file.
   * @returns the destination
   */
  async artifact(id: string, name: string, destination: string, options: CallOptions = {}): Promise<string> {
    const response = await this.#http.open(artifactPath(id, name), options);
    try {
      await writeWhole(destination, this.#http.chunks(response, options.signal));
    } finally {
      response.destroy();
    }
    return destination;
  }
}

function lensPath(name: string): string {
  return `/lab/lenses/${encodeURIComponent(name)}`;
}

function dictionaryPath(name: string): string {
  return `/lab/dictionaries/${encodeURIComponent(name)}`;
}

function artifactPath(id: string, name: string): string {
  return `${jobPath(id)}/artifacts/${encodeURIComponent(name)}`;
}

function jobPath(id: string): string {
  return `/lab/v1/jobs/${encodeURIComponent(id)}`;
}
