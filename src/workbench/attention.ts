import type { Lab } from "../client/index.js";
import { HttpError } from "../http/index.js";
import type { HeadPicture } from "./wire.js";

type Arrays = Awaited<ReturnType<Lab["arrays"]>>;

/** Reads single heads from a job's attention.npz, and caches the last file. */
export class HeadReader {
  #last: { id: string; arrays: Promise<Arrays> } | undefined;

  constructor(private readonly lab: Lab) {}

  /** @throws HttpError @throws TaplineError */
  async read(id: string, layer: number, head: number): Promise<HeadPicture> {
    const job = await this.lab.job(id);
    const found = job.operation === "inspect" ? job.result : undefined;
    const place = (found?.attention ?? [])
      .filter((one) => one.layer === layer)
      .findIndex((one) => one.head === head);
    if (found === undefined || place < 0) {
      throw new HttpError(404, `Job ${job.id} has no attention for layer ${layer}, head ${head}.`);
    }
    const weights = (await this.#arrays(job.id)).get(`layer_${layer}`);
    const [heads = 0, readers = 0, read = 0] = weights?.shape ?? [];
    if (weights === undefined || place >= heads || readers !== found.tokens.length || read !== readers) {
      throw new HttpError(
        502,
        `attention.npz of job ${job.id} does not contain layer ${layer}, head ${head}.`,
      );
    }
    return {
      layer,
      head,
      weights: Array.from({ length: readers }, (_, reader) =>
        Array.from({ length: read }, (_, at) => Number(weights.get(place, reader, at).toPrecision(4))),
      ),
    };
  }

  #arrays(id: string): Promise<Arrays> {
    if (this.#last?.id !== id) {
      const arrays = this.lab.arrays(id, "attention.npz");
      const entry = { id, arrays };
      this.#last = entry;
      arrays.catch(() => {
        if (this.#last === entry) this.#last = undefined;
      });
    }
    return (this.#last as { arrays: Promise<Arrays> }).arrays;
  }
}
