/**
 * Types of the public API, as programs that use it see them: `tsc` is the test (`npm run typecheck`), nothing runs. A line
 * after `@ts-expect-error` must not compile.
 */
import {
  type CompletedJob,
  Lab,
  ResearchClient,
  ServingModel,
  TaplineError,
} from "../../src/client/index.js";
import {
  checkSubmission,
  type InspectResult,
  type Job,
  type JobOf,
  type ProbeResult,
} from "../../src/contracts/index.js";
import { Model, NativeError } from "../../src/native/index.js";

type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : ["different", A, B];
/** Compiles only where the two types are the same. */
const same = <A, B>(..._: Same<A, B> extends true ? [] : [Same<A, B>]): void => {};

export async function lab(): Promise<void> {
  const service = new Lab("http://127.0.0.1:8980", { timeoutMs: 1000 });
  const submitted = await service.inspect("demo", "The capital of France is", { layers: [0, 3] });
  same<typeof submitted, JobOf<"inspect">>();
  const done = await service.wait(submitted);
  same<(typeof done)["result"], InspectResult>();
  done.result.layers[0]?.norms satisfies number[] | undefined;
  done.result.all_layers satisfies { layer: number; norms: number[] }[] | undefined;

  // @ts-expect-error a layer is a number
  await service.inspect("demo", "x", { layers: ["3"] });
  // @ts-expect-error inspect has no strengths
  await service.inspect("demo", "x", { strengths: [1] });
  // @ts-expect-error no such operation
  await service.submit("look", "demo", {});
  // @ts-expect-error probe needs its examples
  await service.submit("probe", "demo", {});
  await service.submit("compare", "demo", { prompt: "x", intervention: "ablate", layers: [1] });
  // @ts-expect-error no such intervention
  await service.submit("compare", "demo", { prompt: "x", intervention: "remove" });
}

/** The operation distinguishes jobs, and the job its result. */
export function describe(job: Job, completed: CompletedJob): string {
  if (job.operation === "probe" && job.result !== undefined) {
    same<typeof job.result, ProbeResult>();
    return String(job.result.reports[0]?.auc);
  }
  if (completed.operation === "inspect") return completed.result.tokens.join("");
  // @ts-expect-error another operation's result has no tokens
  completed.result.tokens;
  return completed.id;
}

export async function serving(): Promise<string> {
  const model = new ServingModel("http://127.0.0.1:8971");
  const captured = await model.inspect("x", { layers: [0] });
  captured.next_tokens[0]?.probability satisfies number | undefined;
  try {
    return (await model.answers("x", { request: { max_tokens: 3 } }))[0]?.text ?? "";
  } catch (error) {
    if (error instanceof TaplineError) return error.message;
    throw error;
  }
}

export async function research(): Promise<void> {
  const client = new ResearchClient();
  const page = await client.listStudies({ query: "probes", limit: 5 });
  page.items[0]?.title satisfies string | undefined;
  // @ts-expect-error a study is named by its id
  await client.getStudy(7);
}

export async function native(path: string): Promise<number> {
  try {
    const model = await Model.open(path, { gpuLayers: 0 });
    const context = await model.createContext({ nCtx: 64 });
    const { layers } = await context.advance({ tokens: Int32Array.of(1, 2), layers: [0], rows: "last" });
    await context.close();
    await model.close();
    // @ts-expect-error tokens are an Int32Array
    await context.advance({ tokens: [1, 2], layers: [0] });
    return layers[0]?.norms[0] ?? 0;
  } catch (error) {
    return error instanceof NativeError ? error.code.length : 0;
  }
}

export function contracts(body: unknown): string {
  const config = checkSubmission(body);
  if (config.operation === "compare") return config.intervention;
  // @ts-expect-error only compare has an intervention
  return config.intervention;
}
