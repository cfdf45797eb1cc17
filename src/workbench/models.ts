import { realpath, stat, statfs } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join, sep } from "node:path";
import { UserError } from "../contracts/user-error.js";
import { workbenchLimits } from "../contracts/workbench-limits.js";
import { HttpError } from "../http/index.js";
import { readGgufHeader } from "../models/gguf-header.js";
import { type CacheContents, listCached, removeCached } from "../models/hub/cached.js";
import { parseHubId } from "../models/hub/id.js";
import type { HubOptions } from "../models/hub/index.js";
import { hubOffers } from "../models/hub/offers.js";
import { type DeviceMemory, judgeMemory } from "../models/memory.js";
import { demoModelPath, modelHere, resolveModel } from "../models/resolve.js";
import { bytes } from "../terminal/index.js";
import type { Events } from "./events.js";
import type { Services } from "./services.js";
import type {
  DownloadStatus,
  LocalModel,
  ModelMemory,
  ModelOffers,
  ModelsHere,
  ModelsStatus,
} from "./wire.js";

/** Functions of the program that started the workbench. */
export interface ModelHost {
  /** The memory layout of a file in llama.cpp, with the default context. */
  layOut(path: string): Promise<readonly DeviceMemory[]>;
  /** Switches the served model; absent if the server was started elsewhere. */
  serve?(model: string, onProgress: (stage: string, fraction: number) => void): Promise<void>;
}

/** Minimum interval between progress events, in milliseconds. */
const progressMs = 500;

/** Progress callback and abort signal of a download. */
export type Fetching = Required<Pick<HubOptions, "signal" | "onDownload">>;

interface Download {
  status: DownloadStatus;
  stop: AbortController;
}

/** The models on this machine: files, memory, downloads, and the served model. */
export class Models {
  readonly #downloads: Download[] = [];
  /** Models outside the cache: previously served ones, and those that the user opened by path. */
  readonly #files = new Set<string>();
  #numbers = 0;
  #changes = 0;
  #switching: ModelsStatus["switching"] = null;

  constructor(
    private readonly services: Services,
    private readonly events: Events,
    private readonly host: ModelHost,
    private readonly now: () => number = () => performance.now(),
  ) {}

  get status(): ModelsStatus {
    return {
      downloads: this.#downloads.map(({ status }) => ({ ...status })),
      switching: this.#switching,
      changes: this.#changes,
    };
  }

  /** The models on this machine. @throws UserError */
  async here(): Promise<ModelsHere> {
    const contents = await listCached();
    return {
      folder: contents.folder,
      models: (await this.#all(contents)).map(({ path: _, ...model }) => model),
      unfinished: contents.unfinished.map(({ repository, bytes, underWay }) => ({
        repository,
        bytes,
        underWay,
      })),
      memory: await this.#memory(),
      diskFree: await statfs(contents.folder).then(
        ({ bavail, bsize }) => bavail * bsize,
        () => null,
      ),
      fixed: this.#fixed(),
    };
  }

  /** The memory that a model needs; null if it is not on this machine. @throws UserError */
  async fits(id: string): Promise<ModelMemory | null> {
    const found = await this.#found(id);
    return found === undefined ? null : this.#judge(found.path);
  }

  /** The models in a repository of the hub, and whether their weights fit. @throws UserError */
  async offers(name: string, signal?: AbortSignal): Promise<ModelOffers> {
    const [{ repository, offers }, { models }, memory] = await Promise.all([
      hubOffers(name, signal === undefined ? {} : { signal }),
      listCached(),
      this.#memory(),
    ]);
    const here = new Set(models.map(({ id }) => id));
    return {
      repository,
      offers: offers.map((offer) => ({
        ...offer,
        here: here.has(offer.id),
        memory: weightsAlone(offer.bytes, memory),
      })),
    };
  }

  /** Adds a file outside the hub's cache to the list, by its path on this machine. @throws HttpError */
  async open(path: string): Promise<LocalModel> {
    const whole = path.startsWith("~/") ? join(homedir(), path.slice(2)) : path;
    if (!isAbsolute(whole)) {
      throw new HttpError(400, `Give the whole path of the file, such as /models/name.gguf; got ${path}.`);
    }
    const found = await stat(whole).catch(() => undefined);
    if (found === undefined) throw new HttpError(404, `There is no file at ${whole}.`);
    const model = await fileModel(whole);
    if (model === undefined || model.header === null) {
      throw new HttpError(
        400,
        `${whole} is not a model: expected a .gguf file${found.isDirectory() ? ", got a folder" : ""}.`,
      );
    }
    this.#files.add(whole);
    this.#changed();
    const { path: _, ...rest } = model;
    return { ...rest, served: false };
  }

  /** Starts or resumes a download. @throws HttpError */
  download(model: string): DownloadStatus {
    if (parseHubId(model) === undefined) {
      throw new HttpError(
        400,
        `${model} is not a hub model; use owner/name, owner/name:Q8_0 or owner/name/file.gguf.`,
      );
    }
    const download = this.#begin(model);
    void this.#fetch(download, async (options) => {
      const { weights } = await resolveModel(model, options);
      return weights.reduce((sum, file) => sum + file.bytes, 0);
    });
    return { ...download.status };
  }

  /**
   * Downloads other files of the hub, listed like a model's download; it ends with `signal`.
   * @throws HttpError with the reason of a failure
   */
  async bring(
    name: string,
    work: (options: Fetching) => Promise<unknown>,
    signal: AbortSignal,
  ): Promise<void> {
    const download = this.#begin(name);
    const { status, stop } = download;
    signal.addEventListener("abort", () => stop.abort(), { once: true });
    let received = 0;
    await this.#fetch(download, async ({ signal, onDownload }) => {
      const follow: Fetching["onDownload"] = (progress) => {
        received = progress.received;
        onDownload(progress);
      };
      await work({ signal, onDownload: follow });
      return status.total;
    });
    if (received === 0) {
      // Everything was here, or nothing came: no download to list.
      this.#downloads.splice(this.#downloads.indexOf(download), 1);
      this.#publish();
    }
    if (status.state !== "done") throw new HttpError(409, status.error ?? "The download was stopped.");
  }

  /** Lists a download that begins. @throws HttpError */
  #begin(model: string): Download {
    const running = this.#downloads.filter(({ status }) => status.state === "running");
    if (running.some(({ status }) => status.model === model)) {
      throw new HttpError(409, `${model} is already being downloaded.`);
    }
    if (running.length >= workbenchLimits.downloads) {
      throw new HttpError(
        409,
        `At most ${workbenchLimits.downloads} downloads can run at the same time; stop one or wait.`,
      );
    }
    this.#numbers += 1;
    const status: DownloadStatus = {
      ...{ number: this.#numbers, model, state: "running", file: "", done: 0, total: 0, speed: 0 },
    };
    const download = { status, stop: new AbortController() };
    this.#downloads.unshift(download);
    const surplus = this.#downloads.findLastIndex(({ status }) => status.state !== "running");
    if (this.#downloads.length > workbenchLimits.downloads_told && surplus > 0) {
      this.#downloads.splice(surplus, 1);
    }
    this.#publish();
    return download;
  }

  /** Stops a download and keeps its partial files. @throws HttpError 404 */
  stop(number: number): void {
    const found = this.#downloads.find(({ status }) => status.number === number);
    if (found === undefined) throw new HttpError(404, `Download ${number} does not exist.`);
    found.stop.abort();
  }

  /** Deletes a model from the cache. @throws HttpError if it is served, used by a job or missing; UserError */
  async remove(id: string): Promise<{ removed: string[]; freed: number }> {
    const model = await this.#find(id);
    if (model.from !== "cache") {
      throw new HttpError(409, "Only models in the hub's cache can be deleted here.");
    }
    if (model.served || (this.#isSwitching() && this.#switching?.model === id)) {
      throw new HttpError(409, `${id} is being served; switch to another model first.`);
    }
    const hub = parseHubId(id);
    const job = this.services.jobs.find(
      ({ status, model: used }) =>
        ["queued", "running"].includes(status) &&
        (used === model.path || parseHubId(used)?.repository === hub?.repository),
    );
    if (job !== undefined) {
      throw new HttpError(409, `Job ${job.id.slice(0, 8)} is using ${id}; cancel the job first.`);
    }
    const done = await removeCached(id);
    this.#changed();
    return done;
  }

  /** Starts switching to another model on this machine; events report the outcome. @throws HttpError, UserError */
  async serve(id: string): Promise<void> {
    const fixed = this.#fixed();
    const { serve } = this.host;
    if (fixed !== null || serve === undefined) throw new HttpError(409, fixed ?? "");
    if (this.#isSwitching()) {
      throw new HttpError(409, `Already switching to ${this.#switching?.model}; wait until that is done.`);
    }
    const model = await this.#find(id);
    if (model.served) throw new HttpError(409, `${id} is already being served.`);
    const { fits, sentence } = await this.#judge(model.path);
    if (fits === "no" || fits === "unknown") throw new HttpError(409, sentence);
    // Another tab may have started a switch in the meantime.
    if (this.#isSwitching())
      throw new HttpError(409, "Already switching to another model; wait until that is done.");
    this.#switching = { model: id, stage: "stopping the old model", fraction: 0 };
    this.#publish();
    void this.#switch(id, serve.bind(this.host));
  }

  close(): void {
    for (const { stop } of this.#downloads) stop.abort();
  }

  async #judge(path: string): Promise<ModelMemory> {
    try {
      return judgeMemory(await this.host.layOut(path));
    } catch (error) {
      if (!(error instanceof Error) || error.name !== "NativeError") throw error;
      return { needed: 0, ...(await this.#memory()), fits: "unknown", sentence: error.message };
    }
  }

  /** Memory of all devices together. */
  async #memory(): Promise<{ free: number; total: number }> {
    const { free, total } = judgeMemory(await this.host.layOut(demoModelPath));
    return { free, total };
  }

  #isSwitching(): boolean {
    return this.#switching !== null && this.#switching.error === undefined;
  }

  async #switch(id: string, serve: NonNullable<ModelHost["serve"]>): Promise<void> {
    let published = Number.NEGATIVE_INFINITY;
    let last = "";
    const before = this.services.served;
    if (before !== undefined && (await modelHere(before).catch(() => undefined)) !== undefined) {
      this.#files.add(before);
    }
    try {
      await serve(id, (stage, fraction) => {
        if (stage === last && this.now() - published < progressMs) return;
        [published, last] = [this.now(), stage];
        this.#switching = { model: id, stage, fraction };
        this.#publish();
      });
      this.services.served = id;
      this.#switching = null;
    } catch (error) {
      this.#switching = { model: id, stage: "", fraction: 0, error: sentenceOf(error) };
    }
    await this.services.look();
    this.#changed();
  }

  #fixed(): string | null {
    if (this.host.serve !== undefined) return null;
    const { url } = this.services.server;
    return (
      `Can't switch models: the server at ${url} was started outside the workbench. Stop it and restart it with another ` +
      "model, or stop both and run `tapline workbench --model MODEL`."
    );
  }

  /** @param work downloads, and resolves to the number of bytes of all files */
  async #fetch({ status, stop }: Download, work: (options: Fetching) => Promise<number>): Promise<void> {
    let published = Number.NEGATIVE_INFINITY;
    let first: { at: number; received: number } | undefined;
    try {
      const { signal } = stop;
      const onDownload: Fetching["onDownload"] = (progress) => {
        const now = this.now();
        // Network speed only, without bytes that were already here and the time to read them.
        if (progress.received > 0) first ??= { at: now, received: progress.received };
        const seconds = first === undefined ? 0 : (now - first.at) / 1000;
        const speed =
          first !== undefined && seconds > 0.5 ? (progress.received - first.received) / seconds : 0;
        const { file, done, total } = progress;
        Object.assign(status, { file, done, total, speed });
        if (now - published < progressMs) return;
        published = now;
        this.#publish();
      };
      const size = await work({ signal, onDownload });
      Object.assign(status, { state: "done", done: size, total: size });
    } catch (error) {
      status.state = stop.signal.aborted ? "stopped" : "failed";
      if (status.state === "failed") status.error = sentenceOf(error);
    }
    this.#changed();
  }

  /** A model in the list. @throws HttpError */
  async #find(id: string): Promise<LocalModel & { path: string }> {
    const found = await this.#found(id);
    if (found === undefined) throw new HttpError(404, `Model ${id.slice(0, 200)} is not on this machine.`);
    return found;
  }

  async #found(id: string): Promise<(LocalModel & { path: string }) | undefined> {
    return (await this.#all(await listCached())).find((model) => model.id === id);
  }

  async #all({ models }: CacheContents): Promise<(LocalModel & { path: string })[]> {
    const served = await this.#servedPath();
    const others = [...new Set(["demo", ...this.#files, ...(await this.#servedFile(served))])];
    const found = [
      ...(await Promise.all(others.map((id) => fileModel(id)))).flatMap((model) => model ?? []),
      ...models.map(({ id, path, bytes, lastUsed, header }) => {
        return { id, from: "cache" as const, bytes, header, lastUsed, path };
      }),
    ];
    return Promise.all(
      found.map(async (model) => ({
        ...model,
        served: served !== undefined && (await real(model.path)) === served,
      })),
    );
  }

  /** The file that the server has loaded, if known. */
  async #servedPath(): Promise<string | undefined> {
    const path = await this.services.modelPath().catch(() => null);
    if (path !== null) return real(path);
    // A server that does not respond right now may still have its model loaded.
    const { served } = this.services;
    if (served === undefined) return undefined;
    const here = await modelHere(served).catch(() => undefined);
    if (here !== undefined) return real(here.path);
    const { models } = await listCached();
    const hub = parseHubId(served);
    const same = models.filter(({ repository }) => repository === hub?.repository);
    const exact = same.find(({ id }) => id === served) ?? same[0];
    return exact === undefined ? undefined : real(exact.path);
  }

  /** The served model, if it is a file outside the cache. */
  async #servedFile(path: string | undefined): Promise<string[]> {
    if (path === undefined || path === (await real(demoModelPath))) return [];
    const { models, folder } = await listCached();
    const cached = await Promise.all(models.map((model) => real(model.path)));
    return cached.includes(path) || path.startsWith(`${await real(folder)}${sep}`)
      ? []
      : [this.services.served ?? path];
  }

  #changed(): void {
    this.#changes += 1;
    this.#publish();
  }

  #publish(): void {
    this.events.publish({ type: "models", models: this.status });
  }
}

/** A model outside the cache; undefined if it no longer exists. */
async function fileModel(id: string): Promise<Omit<LocalModel & { path: string }, "served"> | undefined> {
  const found = await modelHere(id).catch(() => undefined);
  if (found === undefined) return undefined;
  return {
    id,
    from: id === "demo" ? "embedded" : "file",
    bytes: found.weights.reduce((sum, file) => sum + file.bytes, 0),
    header: await readGgufHeader(found.path).catch(() => null),
    lastUsed: null,
    path: found.path,
  };
}

/** Compares the weights with the memory; context and buffers depend on the file's header and need more. */
export function weightsAlone(needed: number, { free, total }: { free: number; total: number }): ModelMemory {
  const fits = needed > total ? "no" : needed > free ? "tight" : "yes";
  const sentence = {
    yes: "",
    tight: `The weights alone need ${bytes(needed)}; ${bytes(free)} of ${bytes(total)} are free.`,
    no: `The weights alone need ${bytes(needed)}; this machine has ${bytes(total)}.`,
  }[fits];
  return { needed, free, total, fits, sentence };
}

function real(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}

function sentenceOf(error: unknown): string {
  if (error instanceof UserError) return error.message;
  return `Failed: ${error instanceof Error ? error.message : String(error)}`;
}
