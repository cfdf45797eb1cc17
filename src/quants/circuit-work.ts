import type { CompletedJob } from "../client/index.js";
import type { GraphResult } from "../contracts/index.js";
import { circuitFigures, comparedGraphs } from "./circuits.js";
import type { OpenedFile } from "./files.js";
import { type Parts, partOf } from "./parts.js";
import type { QuantsRequest } from "./request.js";
import type { CircuitPrompt, Circuits } from "./result.js";
import type { RefusedLine, TargetLine } from "./targets.js";

/**
 * Attribution graphs of every prompt in the reference and in a form. The study has their figures, by prompt, and not the
 * graphs.
 * @returns a sentence if there are none of the architecture, undefined without prompts
 */
export async function circuitsOf(
  { prompts, mostTokens, seed }: QuantsRequest,
  parts: Parts,
  reference: OpenedFile,
  form: OpenedFile,
): Promise<Circuits | string | undefined> {
  if (prompts.length === 0) return undefined;
  const targets = await targetsOf({ prompts, mostTokens }, parts, reference);
  if (typeof targets === "string") return targets;
  const found: CircuitPrompt[] = [];
  for (const { prompt: at, target } of targets) {
    const prompt = prompts[at] as string;
    const settings = { prompt, target_token: target, measured: 0, max_input_tokens: mostTokens, seed };
    const of = (model: OpenedFile) =>
      parts.part(
        partOf(model, `graph-${at}.json`),
        `${model.name}: graph ${at + 1}`,
        { operation: "graph", model: model.path, settings },
        // Edges are not compared.
        async ({ result }) => {
          const { nodes, scores } = result as CompletedJob<"graph">["result"];
          return { nodes, scores } satisfies Pick<GraphResult, "nodes" | "scores">;
        },
      );
    found.push({ prompt, target, ...comparedGraphs(await of(reference), await of(form)) });
  }
  return circuitFigures(found, seed);
}

async function targetsOf(
  { prompts, mostTokens }: Pick<QuantsRequest, "prompts" | "mostTokens">,
  parts: Parts,
  reference: OpenedFile,
): Promise<TargetLine[] | string> {
  const name = partOf(reference, "targets.jsonl");
  const known = await parts.steps.lines<TargetLine | RefusedLine>(name);
  const refusal = () => known.flatMap((line) => ("refused" in line ? [line.refused] : []))[0];
  if (refusal() === undefined && known.length < prompts.length) {
    const task = { kind: "targets" as const, model: reference.path, prompts, from: known.length, mostTokens };
    parts.show("prompts of graphs");
    await parts.apart(task, async (line) => {
      await parts.steps.append(name, line);
      known.push(line as TargetLine | RefusedLine);
    });
  }
  return refusal() ?? (known as TargetLine[]);
}
