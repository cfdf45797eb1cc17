import type { GraphConfig, GraphResult } from "../../contracts/index.js";
import { taplineHome } from "../../files/home.js";
import { checkDictionary } from "../../lab/rows/dictionary-reading.js";
import { bosOf } from "../../lab/rows/example-tokens.js";
import { Dictionaries, type OpenDictionary, writtenPoint } from "../../library/index.js";
import {
  type Context,
  encodeRows,
  type GraphTarget,
  type GraphTranscoderUse,
  type Model,
  type TranscoderGraphRequest,
} from "../../native/index.js";
import type { OperationInput } from "../run.js";
import type { ActiveFeatures } from "./run-described.js";

/** A set of transcoders and their active features in a text. */
export interface Encoded {
  request: Omit<TranscoderGraphRequest, "onProgress" | "signal">;
  used: NonNullable<GraphResult["transcoders"]>;
  active: number;
  activations: ActiveFeatures;
}

/**
 * Encodes what each block's transcoder reads, one block at a time.
 * @throws UserError if the set does not fit the model
 */
export async function encodeText(
  { config, model, progress, signal }: OperationInput<GraphConfig>,
  context: Context,
  tokens: Int32Array,
  targets: readonly GraphTarget[],
): Promise<Encoded> {
  const name = config.transcoders as string;
  const set = await new Dictionaries(taplineHome()).transcoders(name, model.info);
  for (const { stored } of set) checkDictionary(stored, context);
  const zeros = Math.min(tokens.length, config.zero_positions ?? zeroPositions(model, tokens, set));
  const options = signal === undefined ? {} : { signal };
  const captures = set.map(({ stored: { layer, point } }) => ({ layer, point }));
  const { captures: rows } = await context.forward({ sequences: [{ tokens }], captures, ...options });
  const uses: GraphTranscoderUse[] = [];
  const values: Float32Array[] = [];
  for (const [i, { stored, places }] of set.entries()) {
    progress({ stage: "encoding", done: i, total: set.length });
    const states = (rows[i]!.values as Float32Array).subarray(zeros * stored.n_embd);
    const {
      pointers,
      indices,
      values: own,
    } = states.length === 0
      ? { pointers: Float64Array.of(0), indices: new Int32Array(0), values: new Float32Array(0) }
      : await encodeRows(places, states, options);
    const at = Int32Array.from(indices);
    for (let row = 0; row + 1 < pointers.length; row++)
      at.fill(zeros + row, pointers[row], pointers[row + 1]);
    const point = stored.point as GraphTranscoderUse["point"];
    uses.push({ layer: stored.layer, point, dictionary: places, tokens: at, features: indices });
    values.push(own);
  }
  const active = uses.reduce((sum, { features }) => sum + features.length, 0);
  return {
    request: { tokens, targets, transcoders: uses, zeros, nodes: config.nodes, tried: config.measured },
    used: {
      name,
      zero_positions: zeros,
      blocks: set.map(({ stored }, i) => ({
        layer: stored.layer,
        dictionary: stored.name,
        sha256: stored.sha256,
        point: stored.point,
        writes: writtenPoint(stored),
        ...(stored.writes_blocks !== undefined && { writes_blocks: stored.writes_blocks }),
        features: stored.features,
        active: uses[i]?.features.length as number,
      })),
    },
    active,
    activations: {
      set,
      active: uses.map(({ tokens, features }, i) => ({
        tokens,
        features,
        values: values[i] as Float32Array,
      })),
    },
  };
}

/** As the set states; otherwise a BOS token at the beginning, unless the set was trained without. */
function zeroPositions(model: Model, tokens: Int32Array, set: readonly OpenDictionary[]): number {
  const stated = set.map(({ stored }) => stored.zero_positions).filter((count) => count !== undefined);
  if (stated.length > 0) return Math.max(...stated);
  return set.every(({ stored }) => stored.prepend_bos === false) ? 0 : bosOf(model, tokens);
}
