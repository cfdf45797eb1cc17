import type { Context } from "koa";
import type { ForwardEdit, ForwardFile, ForwardRequest, GivenVector } from "../contracts/forward.js";
import { forwardLimits } from "../contracts/forward-limits.js";
import { type NamedPoint, readPointName } from "../contracts/hook-names.js";
import type { LiveVector } from "../contracts/live.js";
import { reversedRange } from "../contracts/reversed-range.js";
import { clientGone, HttpError } from "../http/index.js";
import { editOf } from "../library/index.js";
import type { Edit } from "../native/edit.js";
import type { Engine, ServedForward } from "../native/engine.js";
import { NativeError, release } from "../native/index.js";
import { SerialQueue } from "../native/serial.js";
import { fieldRefusal, refusal } from "./check-body.js";
import { type ForwardTensors, type NamedCapture, tensorsOf } from "./forward-tensors.js";
import type { LiveLibrary } from "./live/library.js";
import { checkWritten, layersOf, vectorOf } from "./live/plan.js";
import { drained } from "./reply.js";
import type { SharedFiles } from "./shared-files.js";

/** Forward passes on the served model, one at a time, with a bounded queue. */
export class Forwards {
  readonly #engine: Engine;
  readonly #library: LiveLibrary;
  readonly #files: SharedFiles;
  #waiting = 0;
  readonly #turns = new SerialQueue("forward calls");

  constructor(engine: Engine, library: LiveLibrary, files: SharedFiles) {
    this.#engine = engine;
    this.#library = library;
    this.#files = files;
  }

  /**
   * Runs a request. A client that disconnects cancels it.
   * @returns the result's file, or undefined if the response has been written
   * @throws HttpError 400 that names the field; 429 if too many calls wait; 503 if the result cannot be stored
   */
  async answer(ctx: Context, request: ForwardRequest): Promise<ForwardFile | undefined> {
    const { info } = this.#engine;
    if (!info.captures) throw new HttpError(400, info.noCaptureReason);
    const captures = capturesOf(request, info);
    const edits = await this.#editsOf(request);
    if (this.#waiting >= forwardLimits.waiting) {
      throw new HttpError(
        429,
        `${this.#waiting} forward calls are waiting; the limit is ${forwardLimits.waiting}.`,
        {
          headers: { "Retry-After": "1" },
        },
      );
    }
    const { signal } = clientGone(ctx);
    const found = await this.#inTurn(() => this.#run(request, captures, edits, signal));
    const tensors = tensorsOf(request, captures, found, info.id);
    if (request.transfer === "file") {
      try {
        return await this.#files.write(tensors.head, tensors.parts, tensors.bytes);
      } finally {
        // A result may have gigabytes, and garbage collection may come after the next ones.
        for (const { values } of found.captures) release(values);
        if (found.logits !== undefined) release(found.logits);
      }
    }
    ctx.type = "application/octet-stream";
    ctx.length = tensors.bytes;
    await stream(ctx, tensors);
    return undefined;
  }

  async #inTurn<T>(run: () => Promise<T>): Promise<T> {
    this.#waiting++;
    try {
      return await this.#turns.run(run);
    } finally {
      this.#waiting--;
    }
  }

  async #run(
    request: ForwardRequest,
    captures: readonly NamedCapture[],
    edits: readonly Edit[][],
    signal: AbortSignal,
  ): Promise<ServedForward> {
    const { logits = "none", positions, precision, add_special_tokens: addSpecial = true } = request;
    try {
      return await this.#engine.forward({
        sequences: request.sequences.map((given, index) => ({
          ...(typeof given === "string" ? { text: given } : { tokens: Int32Array.from(given) }),
          edits: edits[index] as Edit[],
        })),
        captures: captures.map(({ layer, point }) => ({ layer, point })),
        ...(positions && { positions: Int32Array.from(positions) }),
        logits: typeof logits === "string" ? logits : Int32Array.from(logits),
        half: precision === "f16",
        maxBytes: forwardLimits.bytes,
        addSpecial,
        signal,
      });
    } catch (error) {
      if (!(error instanceof NativeError)) throw error;
      if (["CLOSED", "INTERNAL", "CANCELLED"].includes(error.code)) throw error;
      // Limits of the model or the machine are also reported, in the native error's words.
      throw new HttpError(["COMPUTE", "OUT_OF_MEMORY"].includes(error.code) ? 500 : 400, error.message);
    }
  }

  /** The edits of each sequence, in order. */
  async #editsOf({ sequences, edits = [] }: ForwardRequest): Promise<Edit[][]> {
    const plans: Edit[][] = sequences.map(() => []);
    for (const [index, written] of edits.entries()) {
      const path = `edits[${index}]`;
      const made = await this.#edit(path, placed(path, written, this.#engine.info));
      for (const sequence of written.sequences ?? plans.keys()) {
        const plan = plans[sequence];
        if (plan === undefined) {
          const last = sequences.length - 1;
          throw fieldRefusal(
            `${path}.sequences`,
            `sequence ${sequence} does not exist; the last one is ${last}.`,
          );
        }
        plan.push(...made);
      }
    }
    return plans;
  }

  async #edit(path: string, written: ForwardEdit): Promise<Edit[]> {
    const { vector, positions, point } = written;
    checkWritten(path, written);
    const reversed = Array.isArray(positions) ? reversedRange(positions) : null;
    if (reversed !== null) throw fieldRefusal(`${path}.positions[${reversed.index}]`, reversed.sentence);
    const edits: Edit[] = [];
    for (const layer of await layersOf(path, written, this.#library)) {
      const given = isGiven(vector) ? givenVector(`${path}.vector`, vector) : undefined;
      const stored =
        vector === undefined || given !== undefined
          ? undefined
          : await vectorOf(`${path}.vector`, vector as LiveVector, layer, this.#library, point);
      const edit = editOf(
        { ...written, strength: written.strength ?? 1 },
        layer,
        given ?? stored?.vector,
        stored?.feature,
      );
      edits.push(edit);
    }
    return edits;
  }
}

/** An edit with layers and a point where it has a name for both. @throws HttpError 400 */
function placed(path: string, { at, ...written }: ForwardEdit, info: Engine["info"]): ForwardEdit {
  if (at === undefined) return written;
  const other = (["layer", "layers", "point"] as const).find((field) => written[field] !== undefined);
  if (other !== undefined) throw refusal(`${path}.at`, `${path}: at and ${other} are mutually exclusive.`);
  const { layer, point } = pointNamed(`${path}.at`, at, info);
  if (point === "attention" || point === "router") {
    throw fieldRefusal(`${path}.at`, `${point} cannot be changed: it does not have one vector per token.`);
  }
  return { ...written, point, layers: layer === "*" ? [...Array(info.nLayer).keys()] : [layer] };
}

/** @throws HttpError 400 unless the model may have the point */
function pointNamed(field: string, name: string, info: Engine["info"]): NamedPoint {
  // The engine's context has flash attention, so it does not know the weights.
  const points = [...info.points.filter((point) => point !== "router"), "attention"];
  const named = readPointName(name, info.normed);
  if (named !== null && points.includes(named.point)) return named;
  const known = points.map((point) => `${point}.*`).join(", ");
  throw fieldRefusal(field, `${JSON.stringify(name)} is not a point of this model; it has ${known}.`);
}

/** Expands names with `*`. @throws HttpError 400 */
function capturesOf(
  { capture = [], logits = "none", stop_at_layer: stop }: ForwardRequest,
  info: Engine["info"],
): NamedCapture[] {
  if (stop !== undefined && logits !== "none") {
    throw fieldRefusal("stop_at_layer", "logits need every block; leave one of the two out.");
  }
  const found = new Map<string, NamedCapture>();
  for (const [index, name] of capture.entries()) {
    const named = pointNamed(`capture[${index}]`, name, info);
    const layers =
      named.layer === "*" ? [...Array(Math.min(stop ?? info.nLayer, info.nLayer)).keys()] : [named.layer];
    for (const layer of layers) {
      // A block's input is known before the block runs.
      if (stop !== undefined && layer >= stop && !(layer === stop && named.point === "block_in")) {
        throw fieldRefusal(`capture[${index}]`, `block ${layer} is not computed with stop_at_layer ${stop}.`);
      }
      const one = { name: named.nameFor(layer), layer, point: named.point };
      const key = `${named.point}.${layer}`;
      if (!found.has(key)) found.set(key, one);
    }
  }
  return [...found.values()];
}

function isGiven(vector: ForwardEdit["vector"]): vector is GivenVector {
  return typeof vector === "object" && ("values" in vector || "base64" in vector);
}

/** @throws HttpError 400 */
function givenVector(path: string, vector: GivenVector): Float32Array {
  if ("values" in vector) return Float32Array.from(vector.values);
  const bytes = Buffer.from(vector.base64, "base64");
  if (bytes.length === 0 || bytes.length % 4 !== 0) {
    throw fieldRefusal(`${path}.base64`, `must be float32 numbers, got ${bytes.length} bytes.`);
  }
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

/** Writes the file to the response as fast as the client reads it. */
async function stream(ctx: Context, { head, parts }: ForwardTensors): Promise<void> {
  const { res } = ctx;
  ctx.respond = false;
  ctx.status = 200;
  res.writeHead(200, ctx.response.headers as Record<string, string>);
  for (const part of [head, ...parts]) {
    if (res.destroyed) return;
    if (!res.write(part)) await drained(res);
  }
  res.end();
}
