import { realpath, statfs } from "node:fs/promises";
import { sep } from "node:path";
import { UserError } from "../contracts/user-error.js";
import { workbenchLimits } from "../contracts/workbench-limits.js";
import { HttpError } from "../http/index.js";
import { readGgufHeader } from "../models/gguf-header.js";
import { type CacheContents, listCached, removeCached } from "../models/hub/cached.js";
import { parseHubId } from "../models/hub/id.js";
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

/** What only who started the workbench can do with models. */
export interface ModelHost {
  /** How llama.cpp would lay a file out in memory, served with the usual context. */
  layOut(path: string): Promise<readonly DeviceMemory[]>;
  /** Serves another model where the old one was served; absent where the server is somebody else's. */
  serve?(model: string, onProgress: (stage: string, fraction: number) => void): Promise<void>;
}

/** Between two tellings of a download's progress, in milliseconds. */
const tellMs = 500;

interface Download {
  status: DownloadStatus;
  stop: AbortController;
}

/** The models of this machine: what is here, what fits, what is being downloaded, and which one is served. */
export class Models {
  readonly #services: Services;
  readonly #events: Events;
  readonly #host: ModelHost;
  readonly #now: () => number;
  readonly #downloads: Download[] = [];
  /** Models outside the cache that were served: files that somebody named in a terminal. */
  readonly #files = new Set<string>();
  #numbers = 0;
  #changes = 0;
  #switching: ModelsStatus["switching"] = null;

  constructor(
    services: Services,
    events: Events,
    host: ModelHost,
    now: () => number = () => performance.now(),
  ) {
    this.#services = services;
    this.#events = events;
    this.#host = host;
    this.#now = now;
  }

  get status(): ModelsStatus {
    return {
      downloads: this.#downloads.map(({ status }) => ({ ...status })),
      switching: this.#switching,
      changes: this.#changes,
    };
  }

  /** What is on this machine. @throws UserError */
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

  /** What serving a model would take; null where it is not here, or not any more. @throws UserError */
  async fits(id: string): Promise<ModelMemory | null> {
    const found = await this.#found(id);
    return found === undefined ? null : this.#judge(found.path);
  }

  /** What a repository of the hub has, and whether its weights alone would fit. @throws UserError */
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

  /** Begins a download, or goes on with one that was interrupted. @throws HttpError */
  download(model: string): DownloadStatus {
    if (parseHubId(model) === undefined) {
      throw new HttpError(
        400,
        `${model} is no model of the hub: those are owner/name, owner/name:Q8_0 or owner/name/file.gguf.`,
      );
    }
    const running = this.#downloads.filter(({ status }) => status.state === "running");
    if (running.some(({ status }) => status.model === model)) {
      throw new HttpError(409, `${model} is being downloaded already.`);
    }
    if (running.length >= workbenchLimits.downloads) {
      throw new HttpError(
        409,
        `${running.length} downloads are running, at most ${workbenchLimits.downloads} do; stop one or wait.`,
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
    this.#tell();
    void this.#bring(download);
    return { ...status };
  }

  /** Ends a download; what has arrived stays. @throws HttpError 404 */
  stop(number: number): void {
    const found = this.#downloads.find(({ status }) => status.number === number);
    if (found === undefined) throw new HttpError(404, `There is no download ${number}.`);
    found.stop.abort();
  }

  /** Removes one model of the cache. @throws HttpError where it is served, used by a job or not there; UserError */
  async remove(id: string): Promise<{ removed: string[]; freed: number }> {
    const model = await this.#find(id);
    if (model.from !== "cache") {
      throw new HttpError(
        409,
        "Only models of the hub's cache are removed here; other files are their owner's.",
      );
    }
    if (model.served || (this.#isSwitching() && this.#switching?.model === id)) {
      throw new HttpError(409, `${id} is being served; switch to another model first.`);
    }
    const hub = parseHubId(id);
    const job = this.#services.jobs.find(
      ({ status, model: used }) =>
        ["queued", "running"].includes(status) &&
        (used === model.path || parseHubId(used)?.repository === hub?.repository),
    );
    if (job !== undefined) {
      throw new HttpError(409, `Job ${job.id.slice(0, 8)} is using it; cancel that first.`);
    }
    const done = await removeCached(id);
    this.#changed();
    return done;
  }

  /** Gives the server another model, of those that are here. What comes of it is told. @throws HttpError, UserError */
  async serve(id: string): Promise<void> {
    const fixed = this.#fixed();
    const { serve } = this.#host;
    if (fixed !== null || serve === undefined) throw new HttpError(409, fixed ?? "");
    if (this.#isSwitching()) {
      throw new HttpError(409, `The server is being given ${this.#switching?.model}; wait for that.`);
    }
    const model = await this.#find(id);
    if (model.served) throw new HttpError(409, `${id} is being served already.`);
    const { fits, sentence } = await this.#judge(model.path);
    if (fits === "no" || fits === "unknown") throw new HttpError(409, sentence);
    // Between the check and here another tab may have asked, too.
    if (this.#isSwitching())
      throw new HttpError(409, "The server is being given another model; wait for that.");
    this.#switching = { model: id, stage: "ending the old one", fraction: 0 };
    this.#tell();
    void this.#switch(id, serve.bind(this.#host));
  }

  close(): void {
    for (const { stop } of this.#downloads) stop.abort();
  }

  async #judge(path: string): Promise<ModelMemory> {
    try {
      return judgeMemory(await this.#host.layOut(path));
    } catch (error) {
      if (!(error instanceof Error) || error.name !== "NativeError") throw error;
      return { needed: 0, ...(await this.#memory()), fits: "unknown", sentence: error.message };
    }
  }

  /** What is there for models, on all devices together. */
  async #memory(): Promise<{ free: number; total: number }> {
    const { free, total } = judgeMemory(await this.#host.layOut(demoModelPath));
    return { free, total };
  }

  #isSwitching(): boolean {
    return this.#switching !== null && this.#switching.error === undefined;
  }

  async #switch(id: string, serve: NonNullable<ModelHost["serve"]>): Promise<void> {
    let told = Number.NEGATIVE_INFINITY;
    let last = "";
    const before = this.#services.served;
    if (before !== undefined && (await modelHere(before).catch(() => undefined)) !== undefined) {
      this.#files.add(before);
    }
    try {
      await serve(id, (stage, fraction) => {
        if (stage === last && this.#now() - told < tellMs) return;
        [told, last] = [this.#now(), stage];
        this.#switching = { model: id, stage, fraction };
        this.#tell();
      });
      this.#services.served = id;
      this.#switching = null;
    } catch (error) {
      this.#switching = { model: id, stage: "", fraction: 0, error: sentenceOf(error) };
    }
    await this.#services.look();
    this.#changed();
  }

  #fixed(): string | null {
    if (this.#host.serve !== undefined) return null;
    const { url } = this.#services.server;
    return (
      `The server at ${url} was not started by this workbench, which therefore leaves it as it is. ` +
      "Where it was started, end it with Ctrl-C and start it with another model, or end this workbench and it, and start " +
      "tapline workbench with --model."
    );
  }

  async #bring({ status, stop }: Download): Promise<void> {
    let told = Number.NEGATIVE_INFINITY;
    let first: { at: number; received: number } | undefined;
    try {
      const { signal } = stop;
      const onDownload = (progress: { file: string; done: number; total: number; received: number }) => {
        const now = this.#now();
        // Speed is that of the network: what was here before, and the time to read it, is no part of it.
        if (progress.received > 0) first ??= { at: now, received: progress.received };
        const seconds = first === undefined ? 0 : (now - first.at) / 1000;
        const speed =
          first !== undefined && seconds > 0.5 ? (progress.received - first.received) / seconds : 0;
        const { file, done, total } = progress;
        Object.assign(status, { file, done, total, speed });
        if (now - told < tellMs) return;
        told = now;
        this.#tell();
      };
      const { weights } = await resolveModel(status.model, { signal, onDownload });
      const size = weights.reduce((sum, file) => sum + file.bytes, 0);
      Object.assign(status, { state: "done", done: size, total: size });
    } catch (error) {
      status.state = stop.signal.aborted ? "stopped" : "failed";
      if (status.state === "failed") status.error = sentenceOf(error);
    }
    this.#changed();
  }

  /** A model of those that are here; what the page names leads nowhere else. @throws HttpError */
  async #find(id: string): Promise<LocalModel & { path: string }> {
    const found = await this.#found(id);
    if (found === undefined)
      throw new HttpError(404, `There is no model ${id.slice(0, 200)} on this machine.`);
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

  /** The file that the server has loaded, as far as anybody knows. */
  async #servedPath(): Promise<string | undefined> {
    const path = await this.#services.modelPath().catch(() => null);
    if (path !== null) return real(path);
    // A server that does not answer at the moment may still be the one that was started with it.
    const { served } = this.#services;
    if (served === undefined) return undefined;
    const here = await modelHere(served).catch(() => undefined);
    if (here !== undefined) return real(here.path);
    const { models } = await listCached();
    const hub = parseHubId(served);
    const same = models.filter(({ repository }) => repository === hub?.repository);
    const exact = same.find(({ id }) => id === served) ?? same[0];
    return exact === undefined ? undefined : real(exact.path);
  }

  /** The served model where it is a file of somebody's. */
  async #servedFile(path: string | undefined): Promise<string[]> {
    if (path === undefined || path === (await real(demoModelPath))) return [];
    const { models, folder } = await listCached();
    const cached = await Promise.all(models.map((model) => real(model.path)));
    return cached.includes(path) || path.startsWith(`${await real(folder)}${sep}`)
      ? []
      : [this.#services.served ?? path];
  }

  #changed(): void {
    this.#changes += 1;
    this.#tell();
  }

  #tell(): void {
    this.#events.publish({ type: "models", models: this.status });
  }
}

/** A model outside the cache; nothing where it is not there any more. */
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

/** Weights beside the memory; context and buffers come on top, and depend on what the file's header says. */
export function weightsAlone(needed: number, { free, total }: { free: number; total: number }): ModelMemory {
  const fits = needed > total ? "no" : needed > free ? "tight" : "yes";
  const sentence = {
    yes: "",
    tight: `Its weights alone take ${bytes(needed)}, and ${bytes(free)} of ${bytes(total)} are free.`,
    no: `Its weights alone take ${bytes(needed)}, and there are ${bytes(total)} in all.`,
  }[fits];
  return { needed, free, total, fits, sentence };
}

function real(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}

function sentenceOf(error: unknown): string {
  if (error instanceof UserError) return error.message;
  return `It failed: ${error instanceof Error ? error.message : String(error)}`;
}
