import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type LayerRouting, Model } from "../../../src/native/index.js";
import { sameBits } from "./arithmetic.js";
import { logitsOf, prompt, type Subject } from "./check-model.js";
import { type PrintedTensor, runEvalCallback, settings } from "./eval-callback.js";
import { expertsFolder } from "./models.js";
import { type Check, tolerances } from "./report.js";

/**
 * Experts of every token against what llama.cpp's own tool prints: the ids, the weights that the graph multiplies by, and
 * that nobody was left out who scored higher. Where there is one, of a model of the same architecture in which there is a
 * choice, too. Reading them changes no logit.
 */
export async function routing(subject: Subject, tool: string, path: string): Promise<Check> {
  const { supported, reason } = subject.context.points.router;
  if (!supported) {
    const ok = /^The architecture '[^']+' has no proven router: .{20,}\.$/.test(reason);
    return { name: "routing", ok, detail: ok ? "" : `refused with "${reason}"`, note: reason };
  }
  const found: Found = { problems: [], largest: 0, choices: 0 };
  await compare(subject, tool, path, found);
  const wider = join(dirname(path), expertsFolder, basename(path));
  if (existsSync(wider)) {
    const model = await Model.open(wider, { gpuLayers: 0 });
    const context = await model.createContext(settings);
    const layers = context.points.router.layers;
    const plain = await logitsOf(context, { tokens: subject.tokens, layers: [] });
    await compare({ ...subject, model, context, plain, layers: [...layers] }, tool, wider, found);
    await model.close();
  }
  const { problems, largest, choices } = found;
  return {
    name: "routing",
    ok: problems.length === 0,
    detail: problems.slice(0, 3).join("; "),
    measured: { largest, layers: subject.context.points.router.layers.length, choices },
  };
}

interface Found {
  problems: string[];
  /** Difference of a weight beyond the digits that are printed. */
  largest: number;
  /** Tokens of which it was seen that others scored less. */
  choices: number;
}

async function compare(
  { context, model, tokens, plain }: Subject,
  tool: string,
  path: string,
  found: Found,
): Promise<void> {
  await context.reset();
  const { routing = [], logits } = await context.advance({
    tokens,
    layers: [],
    routing: context.points.router.layers,
    logits: true,
  });
  if (!sameBits(logits!, plain)) found.problems.push("reading the router changes the logits");
  const { tensors } = await runEvalCallback(tool, path, prompt, model.info.quantization === "all F32");
  for (const layer of routing) against(layer, tensors, tokens.length, found);
}

function against(
  { layer, chosen, weights }: LayerRouting,
  tensors: PrintedTensor[],
  tokens: number,
  found: Found,
): void {
  const used = chosen.shape[1] as number;
  const named = (...names: string[]) =>
    tensors.filter(({ name }) => names.some((each) => name === `ffn_moe_${each}-${layer}`));
  const [ids] = named("topk");
  const applied = named("weights", "weights_softmax", "weights_norm", "weights_scaled").at(-1);
  const scores = named("probs_masked").at(-1) ?? named("probs_biased").at(-1) ?? named("probs").at(-1);
  if (ids === undefined || applied === undefined || scores === undefined) {
    found.problems.push(`block ${layer} prints no routing`);
    return;
  }
  // The tool asks for the last token's logits, and most architectures drop the other rows in their last block.
  const rows = ids.shape[1];
  const first = tokens - rows;
  for (const { row, column, value } of ids.values) {
    if (chosen.data[(first + row) * used + column] !== value)
      found.problems.push(`block ${layer}, token ${first + row}: expert ${column} is not ${value}`);
  }
  // One number a row and expert, however the tensor is shaped.
  for (const { row, column, value } of applied.values) {
    const at = applied.shape[0] === 1 ? row : row * used + column;
    const off = Math.abs(weights.data[first * used + at]! - value) - tolerances.printedDigit;
    found.largest = Math.max(found.largest, off);
    if (!(off <= tolerances.value)) found.problems.push(`block ${layer}, weight ${at}: off by ${off}`);
  }
  const experts = scores.shape[0];
  for (const row of new Set(scores.values.map((entry) => entry.row))) {
    const own = scores.values.filter((entry) => entry.row === row);
    if (own.length < experts) continue;
    const ours = [...chosen.data.subarray((first + row) * used, (first + row + 1) * used)];
    const scored = (expert: number) => own[expert]!.value;
    const least = Math.min(...ours.map(scored));
    const best = Math.max(...own.filter((_, expert) => !ours.includes(expert)).map(({ value }) => value));
    if (!(least >= best - 2 * tolerances.printedDigit))
      found.problems.push(`block ${layer}, token ${first + row}: ${best} was left out for ${least}`);
    if (experts > used) found.choices++;
  }
}
