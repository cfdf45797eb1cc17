import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Lab } from "../client/lab.js";
import { resolveModel } from "../models/resolve.js";
import type { Step } from "./finished-step.js";
import type { QuantsTask } from "./outcome.js";

/** Speed is no claim of a recipe's, but a result has it: as little as possible. */
const speed = { rounds: 2, promptTokens: 16, generatedTokens: 4 };
const mostTokens = 512;

/** Measures what forms of the model change. The forms are in the output folder meanwhile. */
export async function quantsStep(
  lab: Lab,
  { id, what, model, revision, quants }: QuantsTask,
  folder: string,
  signal: AbortSignal,
  onStage: (stage: string) => void,
): Promise<Step> {
  const [{ runQuants }, { quantsPage }, { quantsEvidence }] = await Promise.all([
    import("../quants/run.js"),
    import("../quants/page.js"),
    import("../quants/study.js"),
  ]);
  const { path } = await resolveModel(model, { signal, ...(revision !== undefined && { revision }) });
  const { make = [], round = [], layers, dictionary, control } = quants;
  // Lists have been filled in by the check.
  const [texts, prompts] = [quants.texts as string[], (quants.prompts ?? []) as string[]];
  const work = join(folder, `${id}-work`);
  try {
    const { quants: found } = await runQuants(
      {
        ...{ reference: path, forms: [], make, keepForms: false, texts, layers, mostTokens },
        round: round.map(({ bits, group, format }) =>
          format === undefined ? { bits: bits as number, group: group ?? null } : { format },
        ),
        ...(dictionary !== undefined && { dictionary }),
        ...(control !== undefined && { control }),
        ...{ prompts, examples: [], seed: 0, ...speed },
      },
      {
        ...{ lab, folder: work, signal },
        onProgress: (part, share) => onStage(`${Math.floor(100 * share)} %, ${part}`),
      },
    );
    return {
      ...{ id, what, result: found },
      page: async () => quantsPage(found),
      evidence: quantsEvidence(found),
    };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
