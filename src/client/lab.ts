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

/** A completed job, with its operation's configuration and result. */
export type CompletedJob<O extends Operation = Operation> = {
  [K in O]: Omit<Job, "operation" | "config" | "result" | "status"> & {
    operation: K;
    status: "completed";
    config: SubmissionOf<K>;
    result: ResultOf<K>;
  };
}[O];

/** The fields of a submission, except operation, model and those that a method takes as arguments. */
export type Settings<O extends Operation, Taken extends string = never> = Omit<
  SubmissionOf<O>,
  "operation" | "model" | Taken
>;

export interface WaitOptions extends CallOptions {
  /** Overall deadline in milliseconds; default: the worker's own (30 minutes). */
  timeoutMs?: number;
  /** Polling interval in milliseconds; default: 500. */
  intervalMs?: number;
  /** Called with the job after every poll. */
  onProgress?: (job: Job) => void;
}

/** The Lab service: experiments that run in a separate worker process and are stored on disk. */
export class Lab {
  readonly #http: Transport;
  /** For requests that may download files. */
  readonly #adding: Transport;

  /**
   * @param baseUrl origin of the Lab, without /lab/v1
   * @param options.timeoutMs longest silence within one request; default: 10 s, or an hour if a dictionary may be downloaded
   */
  constructor(baseUrl = `http://127.0.0.1:${ports.lab}`, options: { timeoutMs?: number } = {}) {
    const open = (usual: number) => new Transport(baseUrl, options.timeoutMs ?? usual, { service: "lab" });
    this.#http = open(10_000);
    this.#adding = open(3_600_000);
  }

  /** The service's operations, limits and current activity. */
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

  /** Submits an experiment and returns before it runs; {@link wait} waits for it. */
  submit<O extends Operation>(
    operation: O,
    model: string,
    settings: Settings<O>,
    options: CallOptions = {},
  ): Promise<JobOf<O>> {
    const body = { operation, model, ...settings };
    return this.#http.json("/lab/v1/jobs", { ...options, method: "POST", body });
  }

  /** @param prompt raw text, or token ids that run exactly as given */
  inspect(
    model: string,
    prompt: string | number[],
    settings: Settings<"inspect", "prompt" | "tokens"> = {},
    options: CallOptions = {},
  ) {
    return this.submit(
      "inspect",
      model,
      { ...(typeof prompt === "string" ? { prompt } : { tokens: prompt }), ...settings },
      options,
    );
  }

  /** @param prompt undefined if `settings.prompts` lists several */
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

  /** @param examples undefined if `settings.from` is an extraction's folder on the service's machine */
  sae(
    model: string,
    examples: Static<typeof SaeExample>[] | undefined,
    settings: Settings<"sae", "examples"> = {},
    options: CallOptions = {},
  ) {
    return this.submit("sae", model, { examples, ...settings }, options);
  }

  /** Encodes texts with a saved dictionary. */
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
   * @param settings.data a .txt, .jsonl, .csv or .parquet file on the service's machine or at a URL, instead of `examples`
   * @param settings.out a folder on that machine; without it the files become artifacts
   */
  extract(model: string, settings: Settings<"extract">, options: CallOptions = {}) {
    return this.submit("extract", model, settings, options);
  }

  /** Compares two models of the same architecture on the same examples. */
  drift(
    model: string,
    other: string,
    examples: Static<typeof DriftExample>[],
    settings: Settings<"drift", "other" | "examples"> = {},
    options: CallOptions = {},
  ) {
    return this.submit("drift", model, { other, examples, ...settings }, options);
  }

  /** Activation patching: patches activations of one prompt into a run on another, for each layer and token. */
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
   * Describes activations in words: the activation of `prompt` at `layer` replaces a token's embedding in a prompt of a
   * verbalizer model, which describes it.
   * @param template the verbalizer's prompt, in which `marker` (one of its tokens) marks the place of the activation
   */
  explain(
    model: string,
    prompt: string,
    { layer, template, marker, ...settings }: Settings<"explain", "prompt">,
    options: CallOptions = {},
  ) {
    return this.submit("explain", model, { prompt, layer, template, marker, ...settings }, options);
  }

  /** An attribution graph of neurons and attention heads, or of transcoder features: what each adds to the next tokens' logits and to each other. */
  graph(
    model: string,
    prompt: string,
    settings: Settings<"graph", "prompt"> = {},
    options: CallOptions = {},
  ) {
    return this.submit("graph", model, { prompt, ...settings }, options);
  }

  /** The saved sparse dictionaries. */
  async dictionaries(options: CallOptions = {}): Promise<StoredDictionary[]> {
    const { dictionaries } = await this.#http.json<{ dictionaries: StoredDictionary[] }>(
      "/lab/dictionaries",
      options,
    );
    return dictionaries;
  }

  /** One saved dictionary. @throws TaplineError if there is none with that name */
  dictionary(name: string, options: CallOptions = {}): Promise<StoredDictionary> {
    return this.#http.json(dictionaryPath(name), options);
  }

  /**
   * Saves a published sparse dictionary under a name, replacing an existing one.
   * @param from its folder or weights file on the service's machine, or owner/name/path on the hub, which is downloaded
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

  /** Deletes a dictionary. @throws TaplineError if there is none with that name */
  async removeDictionary(name: string, options: CallOptions = {}): Promise<void> {
    await this.#http.json(dictionaryPath(name), { ...options, method: "DELETE" });
  }

  /** The saved lenses. */
  async lenses(options: CallOptions = {}): Promise<StoredLens[]> {
    return (await this.#http.json<{ lenses: StoredLens[] }>("/lab/lenses", options)).lenses;
  }

  /** One saved lens. @throws TaplineError if there is none with that name */
  lens(name: string, options: CallOptions = {}): Promise<StoredLens> {
    return this.#http.json(lensPath(name), options);
  }

  /**
   * Saves a Jacobian or tuned lens under a name, replacing an existing one.
   * @param from its folder or weights file on the service's machine, owner/name/path on the hub, which is downloaded, or
   *   `demo` for the embedded model's
   */
  addLens(
    name: string,
    from: string,
    settings: Omit<LensRequest, "from"> = {},
    options: CallOptions = {},
  ): Promise<StoredLens> {
    return this.#adding.json(lensPath(name), { ...options, method: "PUT", body: { from, ...settings } });
  }

  /** Deletes a lens. @throws TaplineError if there is none with that name */
  async removeLens(name: string, options: CallOptions = {}): Promise<void> {
    await this.#http.json(lensPath(name), { ...options, method: "DELETE" });
  }

  /** A job with its configuration and result. */
  job(id: string, options: CallOptions = {}): Promise<Job> {
    return this.#http.json(jobPath(id), options);
  }

  /**
   * Waits until a job has completed. If given the submitted job, the result has its operation's type.
   * @throws TaplineError if it failed, was cancelled or interrupted; TimeoutError on the deadline, which does not cancel
   * the job
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

  /** Cancels a job; has no effect on a finished one. */
  cancel(id: string, options: CallOptions = {}): Promise<Job> {
    return this.#http.json(`${jobPath(id)}/cancel`, { ...options, method: "POST", body: {} });
  }

  /**
   * The arrays of an .npz artifact by name, such as `layer_<n>` [1, tokens, hidden] of activations.npz.
   * @throws TaplineError if there is no such artifact, or it is invalid
   */
  async arrays(id: string, name: string, options: CallOptions = {}): Promise<Map<string, ArtifactArray>> {
    const file = await this.#http.bytes(artifactPath(id, name), options);
    const { readArrays } = await import("./arrays.js");
    return readArrays(file);
  }

  /**
   * Downloads an artifact. The destination is replaced atomically by the complete file.
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
