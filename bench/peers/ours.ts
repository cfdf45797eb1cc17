import type { NdArray } from "ndarray";
import { type Context, Model, sweepCells, trainProbe, trainSae } from "../../src/native/index.js";
import type { Answer, Found, Task } from "./tasks.js";
import { onGpu } from "./tool.js";

/** tapline on one file: the same work through its native interface. */
export class Ours {
  private constructor(
    readonly model: Model,
    readonly threads: number,
    readonly context: Context,
  ) {}

  static async open(path: string, threads: number): Promise<Ours> {
    const model = await Model.open(path, onGpu() ? {} : { gpuLayers: 0 });
    return new Ours(model, threads, await model.createContext({ ...packed, threads }));
  }

  async run(task: Task): Promise<Answer> {
    const [begin, began] = [performance.now(), process.cpuUsage()];
    const found = await this.#work(task);
    const seconds = (performance.now() - begin) / 1000;
    const { user, system } = process.cpuUsage(began);
    return { seconds, processor: (user + system) / 1e6, in_all: 0, peak: 0, ...found() };
  }

  async #work(task: Task): Promise<() => Found> {
    switch (task.task) {
      case "capture":
        return this.#capture(task);
      case "extract":
        return this.#extract(task);
      case "compare":
        return this.#sweep(task);
      case "generate":
        return this.#sweep({ ...task, layer: 0, vector: [], strengths: [] });
      case "learn":
        return this.#learn(task);
      case "patch":
      case "forward":
      case "calls":
        throw new Error(`The suite ${task.task === "patch" ? "patch" : "forward"} times these.`);
    }
  }

  async #capture({ tokens, layers }: Task & { task: "capture" }): Promise<() => Found> {
    await this.context.reset();
    const found = await this.context.advance({ tokens: Int32Array.from(tokens), layers, nextTopK: 5 });
    return () => ({
      norms: found.layers.map(({ norms }) => norms.at(-1) as number),
      next: found.next?.tokenIds[0] as number,
    });
  }

  async #extract({ texts, layer }: Task & { task: "extract" }): Promise<() => Found> {
    const sequences = texts.map((text) => Int32Array.from(text));
    const found = await this.context.features({ sequences, layers: [layer], rows: "all" });
    const { data, shape } = found.get(layer) as NdArray<Float32Array>;
    const [rows, width] = shape as [number, number];
    const ends = [texts[0]?.length ?? 0, rows];
    return () => ({
      norms: ends.map((end) => Math.hypot(...data.subarray((end - 1) * width, end * width))),
      rows,
    });
  }

  /** Contexts are made for their rows, as the Lab makes them; making one is part of the time. */
  async #sweep(task: {
    tokens: number[];
    layer: number;
    vector: number[];
    strengths: number[];
    count: number;
  }): Promise<() => Found> {
    const vector = Float32Array.from(task.vector);
    const plans = task.strengths.map((strength) => [{ layer: task.layer, vector, strength }]);
    const context = await this.model.createContext({
      nCtx: sweepCells(task.tokens.length, plans, task.count),
      nBatch: 256,
      maxSequences: 1 + plans.length,
      threads: this.threads,
    });
    const prompt = Int32Array.from(task.tokens);
    const [trial] = await context.sweep({ prompts: [prompt], plans, maxTokens: task.count });
    await context.close();
    const rows = plans.length === 0 ? [trial?.baseline] : (trial?.rows ?? []);
    return () => ({ continuations: rows.map((each) => [...(each?.continuation ?? [])]) });
  }

  async #learn({ texts, labels, train, ...task }: Task & { task: "learn" }): Promise<() => Found> {
    const sequences = texts.map((text) => Int32Array.from(text));
    const found = await this.context.features({ sequences, layers: [task.layer] });
    const set = {
      features: found.get(task.layer)?.data as Float32Array,
      train: Uint8Array.from(train),
      threads: this.threads,
    };
    const probe = await trainProbe({ ...set, labels: Uint8Array.from(labels), control: false });
    await trainSae({ ...set, nFeatures: task.features, steps: task.steps });
    return () => ({ accuracy: probe.accuracy });
  }

  close(): Promise<void> {
    return this.model.close();
  }
}

/** As the Lab packs texts on a processor. */
const packed = { nCtx: 256, nBatch: 256, maxSequences: 64 };
