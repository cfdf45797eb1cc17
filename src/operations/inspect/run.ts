import type {
  Candidate,
  Decomposition,
  InspectConfig,
  InspectPoint,
  InspectResult,
  MeasuredLayer,
  Standing,
} from "../../contracts/index.js";
import { limits, topCounts } from "../../contracts/limits.js";
import { NpzWriter } from "../../formats/npz-writer.js";
import type { ArtifactFile } from "../../lab/artifacts.js";
import { checkPoints, inContext } from "../../lab/rows/open-context.js";
import {
  checkLayers,
  givenTokens,
  pieceLookup,
  spaceNote,
  targetToken,
  tokenizeInput,
} from "../../lab/rows/tokens.js";
import {
  type AdvanceResult,
  type Context,
  type LensReading,
  type Point,
  release,
  type TopTokens,
} from "../../native/index.js";
import type { Findings, OperationInput, Run } from "../run.js";
import { attention } from "./run-attention.js";
import { checkDecomposable, decompose } from "./run-decompose.js";
import { type LensExtras, lensExtras } from "./run-lens-extras.js";
import { RoutingReader } from "./run-routing.js";

const lensNote =
  "Predictions at a block apply the model's final norm and output head to that block's output (logit lens): " +
  "what the model would predict if the block were its last, not what it has decided there.";

const measuresNote =
  "Entropy is that of the lens reading; divergence is KL(output ‖ reading). Both in nats. A small divergence means that the " +
  "lens reads what the model will say, not that the block has decided it.";

const partsNote =
  "attn_out and ffn_out are what attention and MLP add to the residual stream. Contributions to a logit are " +
  "direct: indirect effects are credited to the later block.";

/** The findings at one point of one layer, collected chunk by chunk; activations go straight to the file. */
interface LayerFindings {
  layer: number;
  point: Point;
  norms: number[];
  lens: LensReading[];
  translated: LensReading[];
}

interface Wanted {
  tokens: Int32Array;
  /** The token that the lens tracks at every token; null for none. */
  target: number | null;
}

/**
 * Runs a prompt through the model once, in chunks, and records every token's L2 norm and logit lens at each selected
 * block. Block outputs are streamed to `activations.npz`, float32 [1, tokens, hidden] per layer. The same for further
 * points of these blocks, if requested.
 */
export async function inspect(input: OperationInput<InspectConfig>): Promise<Findings<InspectResult>> {
  const { config, model, artifacts, clock } = input;
  checkLayers(model, config.layers);
  const tokens =
    config.tokens === undefined
      ? await tokenizeInput(model, config.prompt as string, config.max_input_tokens, "prompt")
      : givenTokens(model, config.tokens, config.max_input_tokens);
  // First, because it may reject the request as too large.
  const heads = config.attention === undefined ? undefined : await attention(input, tokens);
  const target = config.target_token === undefined ? null : await targetToken(model, config.target_token);
  return inContext(input, { nCtx: tokens.length }, async (context) => {
    checkPoints(context, config.points ?? []);
    if (config.decompose === true) checkDecomposable(context);
    const extras = await lensExtras(config, model, context);
    const routing =
      config.routing === true ? new RoutingReader(context, config.layers, tokens.length) : undefined;
    const points: Point[] = ["block_out", ...(config.points ?? [])];
    const layers = config.layers.flatMap((layer) =>
      points.map((point): LayerFindings => ({ layer, point, norms: [], lens: [], translated: [] })),
    );
    const measured = layersToMeasure(context, config.layers, tokens.length);
    let next: TopTokens | undefined;
    await artifacts.create("activations.npz", async (file) => {
      next = await captureAll(input, context, { tokens, target }, { layers, measured }, file, {
        extras,
        routing,
      });
    });
    if (routing !== undefined) await clock.measure("artifact", () => routing.write(artifacts));
    const decomposed =
      config.decompose === true
        ? await clock.measure("compute", () => decompose(model, context, tokens, target, input.signal))
        : undefined;
    const described = await describe(
      input,
      context,
      { tokens, target },
      { layers, measured },
      next as TopTokens,
      extras,
      decomposed,
    );
    return {
      ...described,
      ...(heads === undefined ? {} : { attention: heads }),
      ...(routing === undefined ? {} : { routing: routing.describe() }),
    };
  });
}

/** Layers that were not selected: measured at each token, read by the lens from one on. */
interface Measured {
  layers: LayerFindings[];
  from: number;
}

/** A lens over all tokens and layers of a long prompt would take minutes: the last tokens that fit are read. */
function layersToMeasure({ points }: Context, selected: readonly number[], tokens: number): Measured {
  const readable = points.block_out.layers;
  const others = readable.filter((layer) => !selected.includes(layer));
  return {
    layers: others.map((layer) => ({ layer, point: "block_out", norms: [], lens: [], translated: [] })),
    from: Math.max(0, tokens - Math.floor(limits.lens_activations / Math.max(1, readable.length))),
  };
}

interface Found {
  layers: LayerFindings[];
  measured: Measured;
}

async function captureAll(
  { config, model, progress, signal, clock }: OperationInput<InspectConfig>,
  context: Context,
  { tokens, target }: Wanted,
  { layers, measured }: Found,
  file: ArtifactFile,
  { extras, routing }: { extras: LensExtras | undefined; routing: RoutingReader | undefined },
): Promise<TopTokens | undefined> {
  const npz = new NpzWriter(
    file,
    layers.map(({ layer, point }) => ({
      name: point === "block_out" ? `layer_${layer}` : `layer_${layer}_${point}`,
      shape: [1, tokens.length, model.info.nEmbd],
    })),
  );
  let next: TopTokens | undefined;
  for (let start = 0; start < tokens.length; start += context.nBatch) {
    progress({ stage: "capture", done: start, total: tokens.length });
    const chunk = tokens.slice(start, start + context.nBatch);
    const last = start + chunk.length === tokens.length;
    const captured = await clock.measure("compute", () =>
      context.advance({
        tokens: chunk,
        layers: config.layers,
        points: ["block_out", ...(config.points ?? [])],
        rows: "all",
        ...(signal === undefined ? {} : { signal }),
        ...(context.lens.supported && { lensTopK: topCounts.predictions }),
        ...(extras && { lensExtras: extras.request }),
        ...(target === null ? {} : { lensTarget: target }),
        lensAnswer: config.follow_answer === true,
        measure: {
          layers: measured.layers.map(({ layer }) => layer),
          lensFrom: Math.max(0, measured.from - start),
          ...(context.lens.supported && { lensTopK: topCounts.predictions }),
        },
        ...(routing === undefined ? {} : { routing: routing.layers }),
        ...(last ? { nextTopK: topCounts.next_tokens } : {}),
      }),
    );
    next = captured.next;
    routing?.take(captured.routing ?? []);
    for (const [index, { norms, lens }] of (captured.measured ?? []).entries()) {
      measured.layers[index]?.norms.push(...norms);
      if (lens !== undefined) measured.layers[index]?.lens.push(lens);
    }
    await clock.measure("artifact", () => store(captured, layers, npz));
  }
  progress({ stage: "artifact", done: tokens.length, total: tokens.length });
  await clock.measure("artifact", () => npz.finish());
  return next;
}

async function store(captured: AdvanceResult, layers: LayerFindings[], npz: NpzWriter): Promise<void> {
  for (const [index, { states, norms, lens, translated }] of captured.layers.entries()) {
    const rows = (states as NonNullable<typeof states>).data;
    const found = layers[index] as LayerFindings;
    found.norms.push(...norms);
    if (lens !== undefined) found.lens.push(lens);
    if (translated !== undefined) found.translated.push(translated);
    await npz.append(index, rows);
    release(rows);
  }
}

async function describe(
  { config, model }: OperationInput<InspectConfig>,
  context: Context,
  { tokens, target }: Wanted,
  { layers, measured }: Found,
  next: TopTokens,
  extras: LensExtras | undefined,
  decomposed?: Omit<Decomposition, "target_token">,
): Promise<Findings<InspectResult>> {
  const tops = [
    next,
    ...[...layers, ...measured.layers].flatMap(({ lens, translated }) => [...lens, ...translated]),
  ];
  const followed = config.follow_answer === true ? (next.tokenIds[0] as number) : target;
  const piece = await pieceLookup(
    model,
    [followed ?? [], decomposed?.target_token_id ?? [], ...tops.map(({ tokenIds }) => [...tokenIds])].flat(),
  );
  const { lens, blockOutputs } = context;
  const readings = (chunks: readonly LensReading[]) => ({
    predictions: chunks.flatMap((top) => candidates(top, piece)),
    ...(followed === null ? {} : { target: chunks.flatMap(standings) }),
    ...joined("entropies", chunks),
    ...joined("divergences", chunks),
  });
  const inner = layers.filter(({ point }) => point !== "block_out");
  const selected = layers.filter(({ point }) => point === "block_out");
  /** The same of a selected layer, whose lens read every token. */
  const measuredLayer = (found: LayerFindings, from: number): MeasuredLayer => {
    const { predictions, target } = readings(found.lens);
    return {
      ...{ layer: found.layer, norms: found.norms },
      ...(lens.supported && { predictions: predictions.slice(from) }),
      ...(lens.supported &&
        target && { target: target.length === tokens.length ? target.slice(from) : target }),
    };
  };
  return {
    tokens: await model.pieces(tokens),
    token_ids: [...tokens],
    layers: selected.map((found) => ({
      layer: found.layer,
      norms: found.norms,
      ...(lens.supported ? readings(found.lens) : { note: lens.reason }),
      ...(found.translated.length > 0 ? { translated: readings(found.translated) } : {}),
    })),
    all_layers: [
      ...selected.map((found) => measuredLayer(found, measured.from)),
      ...measured.layers.map((found) => measuredLayer(found, 0)),
    ].sort((a, b) => a.layer - b.layer),
    ...(lens.supported && { all_layers_from: measured.from }),
    ...(inner.length === 0
      ? {}
      : {
          points: inner.map((found) => ({
            layer: found.layer,
            point: found.point as InspectPoint["point"],
            norms: found.norms,
            ...(found.lens.length > 0 ? readings(found.lens) : {}),
          })),
        }),
    ...(decomposed === undefined
      ? {}
      : { decomposition: { target_token: piece(decomposed.target_token_id), ...decomposed } }),
    ...(extras?.lens && { lens: extras.lens }),
    ...(followed === null ? {} : { target_token: piece(followed), target_token_id: followed }),
    next_tokens: candidates(next, piece)[0] as Candidate[],
    note: [
      target === null ? "" : spaceNote(piece(target), piece(next.tokenIds[0] as number)),
      lens.supported ? lensNote : lens.reason,
      blockOutputs.sidePath,
      extras !== undefined ? measuresNote : "",
      inner.length > 0 || decomposed !== undefined ? partsNote : "",
    ]
      .filter((part) => part !== "")
      .join(" "),
  };
}

/** One measure of all chunks, one number per token; empty if not requested. */
function joined<K extends "entropies" | "divergences">(
  name: K,
  chunks: readonly LensReading[],
): { [key in K]?: number[] } {
  const all = chunks.flatMap((chunk) => Array.from(chunk[name] ?? []));
  return all.length === 0 ? {} : ({ [name]: all } as { [key in K]?: number[] });
}

/** The target's rank and probability, at the tokens that have one. */
function standings({ targetRanks, targetProbabilities }: TopTokens): Standing[] {
  return Array.from(targetRanks ?? [], (rank, row) => ({
    probability: targetProbabilities?.[row] as number,
    rank,
  })).filter(({ rank }) => rank > 0);
}

/** One list of candidates per token. */
function candidates(top: TopTokens, piece: (id: number) => string): Candidate[][] {
  const rows: Candidate[][] = [];
  for (let start = 0; start < top.tokenIds.length; start += top.k) {
    rows.push(
      Array.from(top.tokenIds.subarray(start, start + top.k), (id, offset) => ({
        token_id: id,
        token: piece(id),
        probability: top.probabilities[start + offset] as number,
      })),
    );
  }
  return rows;
}

export default {
  run: inspect,
} satisfies Run<"inspect">;
