import type { McpServer } from "@modelcontextprotocol/server";
import Type, { type Static } from "typebox";
import { type ServingModel, TaplineError } from "../client/index.js";
import { CaptureRequest } from "../contracts/index.js";
import { liveKinds } from "../contracts/interventions.js";
import { ProbeRequest, VectorRequest } from "../contracts/library.js";
import { limits } from "../contracts/limits.js";
import { LiveRequest, Name } from "../contracts/live.js";
import { mcpLimits } from "../contracts/mcp.js";
import { excerpt } from "./excerpt.js";
import { anObject, objects } from "./listed.js";
import { cuts, local, quoted, resultSchema, shown } from "./result.js";
import { revealAll } from "./reveal.js";
import { addTool } from "./tool.js";
import { replace, unlessKept } from "./unless-kept.js";

const closed = { additionalProperties: false };
const Nothing = Type.Object({}, closed);
const { model: _model, ...inspectFields } = CaptureRequest.properties;
const InspectInput = Type.Object(inspectFields, closed);

const Message = Type.Object(
  { role: Type.Enum(["system", "user", "assistant"]), content: Type.String({ minLength: 1 }) },
  closed,
);
const GenerateInput = Type.Object(
  {
    messages: Type.Optional(
      Type.Array(Message, {
        minItems: 1,
        maxItems: 100,
        description: "A conversation, in the chat template.",
      }),
    ),
    prompt: Type.Optional(
      Type.String({
        minLength: 1,
        description: "Instead of messages: a raw text that the model goes on with.",
      }),
    ),
    max_tokens: Type.Optional(
      Type.Integer({ minimum: 1, maximum: mcpLimits.answer_tokens, default: mcpLimits.usual_answer_tokens }),
    ),
    temperature: Type.Optional(
      Type.Number({ minimum: 0, maximum: 2, description: "0: always the most probable token." }),
    ),
    seed: Type.Optional(Type.Integer({ minimum: 0, maximum: limits.seed })),
    thinking: Type.Optional(Type.Boolean({ description: "Of a chat whose template knows thinking." })),
    tapline: Type.Optional(LiveRequest),
  },
  closed,
);

const VectorInput = Type.Object({ ...VectorRequest.properties, replace }, closed);
const ProbeInput = Type.Object({ ...ProbeRequest.properties, replace }, closed);
const Kind = Type.Enum(["vector", "probe"]);
const LibraryInput = Type.Object(
  { kind: Type.Optional(Kind), name: Type.Optional(Name) },
  { ...closed, description: "Without both: the list of everything." },
);
const ForgetInput = Type.Object({ kind: Kind, name: Name }, closed);

/** The tools for the model that an inference server holds: looked into, steered, watched. */
export function addServingTools(server: McpServer, serving: ServingModel): void {
  addTool(server, {
    name: "serving_capabilities",
    title: "The model being served",
    description:
      "Which model the inference server holds in memory, and whether and how far it can be inspected.",
    input: Nothing,
    output: resultSchema({ capabilities: anObject }),
    call: async (_input, signal) => shown({ capabilities: await serving.capabilities({ signal }) }),
  });
  addTool(server, {
    name: "serving_inspect",
    title: "Look into the model being served",
    description:
      "Runs a raw prompt (no chat template) through the model in memory: each token's activation norms at the chosen " +
      "blocks' outputs, and the candidates for the next token. Waits for its turn between two requests.",
    input: InspectInput,
    output: resultSchema({ capture: anObject }),
    async call({ prompt, layers, max_input_tokens }, signal) {
      return shown({
        capture: await serving.inspect(prompt, { layers, maxInputTokens: max_input_tokens, signal }),
      });
    },
  });
  addTool(server, {
    name: "serving_generate",
    title: "Let the model answer, steered and watched",
    description:
      "The served model answers messages or continues a prompt. `tapline` changes and reads it while it writes: " +
      `\`interventions\` (${liveKinds.join(", ")}; vectors are those that serving_library lists), ` +
      "`watch` (norms, lens, probes, projections per token), `stop_when` (a probe's bound), `pair` (also the answer " +
      "without interventions). The result has each edit's rows and lengths: a mean change of 0 did nothing. To claim an " +
      "effect, compare with `pair` and with random directions of the same length.",
    input: GenerateInput,
    output: resultSchema({
      answers: objects,
      cut: cuts("watch fewer layers, probes or positions, or fewer tokens, for the rest."),
    }),
    call: async (input, signal) => generated(serving, input, signal),
  });
  addTool(server, {
    name: "serving_library",
    title: "Vectors and probes that requests can name",
    description:
      "Lists them, or shows one (`kind` and `name`): layers, length, how well it separates held-out texts (AUROC; " +
      "`shuffled_separation` is chance), and the model that it belongs to.",
    input: LibraryInput,
    output: resultSchema({
      vectors: Type.Optional(objects),
      probes: Type.Optional(objects),
      cut: cuts("name one of them to see it whole."),
    }),
    call: async (input, signal) => inPart(await library(serving, input, signal)),
  });
  addTool(server, {
    name: "serving_make_vector",
    title: "Make a direction from texts",
    description:
      "A direction in the served model, from texts that have something and texts that lack it, saved under a name. " +
      "Choose texts that differ in this alone: a direction holds every difference. A separation near " +
      "shuffled_separation means that there is none.",
    input: VectorInput,
    output: resultSchema({ vector: anObject }),
    destructive: true,
    async call({ replace, ...request }, signal) {
      await unlessKept("vector", request.name, replace, () => serving.vectors({ signal }));
      return shown({ vector: await serving.makeVector(request, { signal }) });
    },
  });
  addTool(server, {
    name: "serving_make_probe",
    title: "Train a probe on texts",
    description:
      "A linear probe at one block of the served model: 1 for texts like the positive ones, 0 for the negative; saved " +
      "under a name, for `watch`, `when` and `stop_when`. Every fifth text is held out; separation is the AUROC there.",
    input: ProbeInput,
    output: resultSchema({ probe: anObject }),
    destructive: true,
    async call({ replace, ...request }, signal) {
      await unlessKept("probe", request.name, replace, () => serving.probes({ signal }));
      return shown({ probe: await serving.makeProbe(request, { signal }) });
    },
  });
  addTool(server, {
    name: "serving_forget",
    title: "Forget a vector or a probe",
    description: "Deletes it from the library. Later requests that name it are refused.",
    input: ForgetInput,
    output: resultSchema({ forgotten: Type.String() }),
    destructive: true,
    async call({ kind, name }, signal) {
      await (kind === "vector"
        ? serving.removeVector(name, { signal })
        : serving.removeProbe(name, { signal }));
      return shown({ forgotten: name });
    },
  });
}

async function generated(
  serving: ServingModel,
  {
    messages,
    prompt,
    thinking,
    max_tokens = mcpLimits.usual_answer_tokens,
    ...asked
  }: Static<typeof GenerateInput>,
  signal: AbortSignal,
) {
  const question = messages ?? prompt;
  if (question === undefined || (messages !== undefined && prompt !== undefined)) {
    throw new TaplineError("One of messages and prompt is required, and not both.");
  }
  if (thinking !== undefined && messages === undefined) {
    throw new TaplineError("thinking belongs to messages: a raw prompt has no chat template.");
  }
  const request = {
    ...asked,
    max_tokens,
    ...(thinking !== undefined && { chat_template_kwargs: { enable_thinking: thinking } }),
  };
  const answers = (await serving.answers(question, { request, signal })).map(({ finishReason, ...rest }) => ({
    ...rest,
    finish_reason: finishReason,
  }));
  return inPart({ answers });
}

/** A result that says what of it did not fit. */
function inPart(data: object) {
  const { value, hidden } = revealAll(data);
  const part = excerpt(value);
  return quoted(local, hidden, { ...(part.value as object), cut: part.cut });
}

async function library(
  serving: ServingModel,
  { kind, name }: Static<typeof LibraryInput>,
  signal: AbortSignal,
): Promise<object> {
  if (name !== undefined) {
    if (kind === undefined) throw new TaplineError("kind is required with name: vector or probe.");
    return kind === "vector"
      ? { vectors: [await serving.vector(name, { signal })] }
      : { probes: [await serving.probe(name, { signal })] };
  }
  return {
    ...(kind !== "probe" && { vectors: await serving.vectors({ signal }) }),
    ...(kind !== "vector" && { probes: await serving.probes({ signal }) }),
  };
}
