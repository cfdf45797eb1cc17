import type { McpServer } from "@modelcontextprotocol/server";
import Type, { type Static } from "typebox";
import { type ServingModel, TaplineError } from "../client/index.js";
import { CaptureRequest } from "../contracts/index.js";
import { liveKinds } from "../contracts/interventions.js";
import { ProbeRequest, VectorRequest } from "../contracts/library.js";
import { limits } from "../contracts/limits.js";
import { LiveRequest, Name } from "../contracts/live.js";
import { mcpLimits } from "../contracts/mcp.js";
import { ProfileRequest } from "../contracts/profile.js";
import { profileId } from "../contracts/profile-name.js";
import { excerpt } from "./excerpt.js";
import { anObject, objects } from "./listed.js";
import { checkNotTaken, replace } from "./name-taken.js";
import { cuts, local, quoted, resultSchema, shown } from "./result.js";
import { revealAll } from "./reveal.js";
import { addTool } from "./tool.js";

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
        description: "A conversation, formatted with the chat template.",
      }),
    ),
    prompt: Type.Optional(
      Type.String({
        minLength: 1,
        description: "Instead of messages: a raw text to continue.",
      }),
    ),
    max_tokens: Type.Optional(
      Type.Integer({ minimum: 1, maximum: mcpLimits.answer_tokens, default: mcpLimits.usual_answer_tokens }),
    ),
    temperature: Type.Optional(
      Type.Number({ minimum: 0, maximum: 2, description: "0 always chooses the most probable token." }),
    ),
    seed: Type.Optional(Type.Integer({ minimum: 0, maximum: limits.seed })),
    thinking: Type.Optional(
      Type.Boolean({ description: "For messages, if the chat template supports thinking." }),
    ),
    tapline: Type.Optional(LiveRequest),
    profile: Type.Optional(Name),
  },
  closed,
);

const VectorInput = Type.Object({ ...VectorRequest.properties, replace }, closed);
const ProbeInput = Type.Object({ ...ProbeRequest.properties, replace }, closed);
const ProfileInput = Type.Object(
  {
    name: Name,
    description: ProfileRequest.properties.description,
    // The server validates it; its schema is that of serving_generate, and listing it twice would fill agents' contexts.
    tapline: Type.Object({}, { description: "As in serving_generate, without pair." }),
    replace,
  },
  closed,
);
const Kind = Type.Enum(["vector", "probe", "profile"]);
const LibraryInput = Type.Object(
  { kind: Type.Optional(Kind), name: Type.Optional(Name) },
  { ...closed, description: "Without kind and name: lists everything." },
);
const ForgetInput = Type.Object({ kind: Kind, name: Name }, closed);

/** Tools for the model of an inference server: inspect, steer, and read it. */
export function addServingTools(server: McpServer, serving: ServingModel): void {
  addTool(server, {
    name: "serving_capabilities",
    title: "The served model",
    description: "The inference server's model, whether it can be inspected, and the limits.",
    input: Nothing,
    output: resultSchema({ capabilities: anObject }),
    call: async (_input, signal) => shown({ capabilities: await serving.capabilities({ signal }) }),
  });
  addTool(server, {
    name: "serving_inspect",
    title: "Inspect the served model",
    description:
      "Runs a raw prompt (no chat template) through the loaded model: each token's activation norms at the chosen " +
      "blocks' outputs, and next-token candidates.",
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
    title: "Generate with interventions and readings",
    description:
      "The served model answers messages or continues a prompt. `tapline` edits and reads activations during generation: " +
      `\`interventions\` (${liveKinds.join(", ")}; serving_library lists the vectors), ` +
      "`watch` (norms, lens, probes, projections, features per token), `stop_when` (a probe's bound), `pair` (also the answer " +
      "without interventions). `profile` adds the edits of a saved profile. The result reports each edit's positions and size: a mean change of 0 means no effect. To claim an " +
      "effect, compare with `pair` and with random directions of the same norm.",
    input: GenerateInput,
    output: resultSchema({
      answers: objects,
      cut: cuts("watch fewer layers, probes, positions or tokens to see everything."),
    }),
    call: async (input, signal) => generated(serving, input, signal),
  });
  addTool(server, {
    name: "serving_library",
    title: "Saved vectors, probes and profiles",
    description:
      "Lists them, or shows one (`kind` and `name`): layers, norm, how well it separates held-out texts (AUROC; " +
      "`shuffled_separation` is chance), and its model; a profile's edits and readings.",
    input: LibraryInput,
    output: resultSchema({
      vectors: Type.Optional(objects),
      probes: Type.Optional(objects),
      profiles: Type.Optional(objects),
      cut: cuts("pass kind and name to see one completely."),
    }),
    call: async (input, signal) => inPart(await library(serving, input, signal)),
  });
  addTool(server, {
    name: "serving_make_vector",
    title: "Create a direction from texts",
    description:
      "Creates a direction in the served model from texts with and without some property, and saves it under a name. " +
      "Choose texts that differ only in this property: a direction captures every difference. A separation near " +
      "shuffled_separation means that it found nothing.",
    input: VectorInput,
    output: resultSchema({ vector: anObject }),
    destructive: true,
    async call({ replace, ...request }, signal) {
      await checkNotTaken("vector", request.name, replace, () => serving.vectors({ signal }));
      return shown({ vector: await serving.makeVector(request, { signal }) });
    },
  });
  addTool(server, {
    name: "serving_make_probe",
    title: "Train a probe on texts",
    description:
      "Trains a linear probe at one block of the served model (1: like the positive texts, 0: like the negative) and saves it " +
      "under a name, for `watch`, `when` and `stop_when`. Every fifth text is held out; separation is the AUROC on those.",
    input: ProbeInput,
    output: resultSchema({ probe: anObject }),
    destructive: true,
    async call({ replace, ...request }, signal) {
      await checkNotTaken("probe", request.name, replace, () => serving.probes({ signal }));
      return shown({ probe: await serving.makeProbe(request, { signal }) });
    },
  });
  addTool(server, {
    name: "serving_save_profile",
    title: "Save edits as a profile",
    description:
      "Saves interventions and readings under a name. Requests whose `model` is MODEL@NAME, from any " +
      "program on this machine, run with them; serving_generate takes it as `profile`. It records the hashes of its " +
      "vectors and is refused once one of them changes.",
    input: ProfileInput,
    output: resultSchema({ profile: anObject }),
    destructive: true,
    async call({ name, replace, ...request }, signal) {
      await checkNotTaken("profile", name, replace, () => serving.profiles({ signal }));
      return shown({ profile: await serving.putProfile(name, request, { signal }) });
    },
  });
  addTool(server, {
    name: "serving_forget",
    title: "Delete a vector, a probe or a profile",
    description: "Deletes it from the library. Later uses are refused.",
    input: ForgetInput,
    output: resultSchema({ forgotten: Type.String() }),
    destructive: true,
    async call({ kind, name }, signal) {
      await {
        vector: () => serving.removeVector(name, { signal }),
        probe: () => serving.removeProbe(name, { signal }),
        profile: () => serving.removeProfile(name, { signal }),
      }[kind]();
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
    profile,
    max_tokens = mcpLimits.usual_answer_tokens,
    ...asked
  }: Static<typeof GenerateInput>,
  signal: AbortSignal,
) {
  const question = messages ?? prompt;
  if (question === undefined || (messages !== undefined && prompt !== undefined)) {
    throw new TaplineError("Pass either messages or prompt, but not both.");
  }
  if (thinking !== undefined && messages === undefined) {
    throw new TaplineError("thinking requires messages: a raw prompt has no chat template.");
  }
  const request = {
    ...asked,
    max_tokens,
    ...(profile !== undefined && { model: await profiled(serving, profile, signal) }),
    ...(thinking !== undefined && { chat_template_kwargs: { enable_thinking: thinking } }),
  };
  const answers = (await serving.answers(question, { request, signal })).map(({ finishReason, ...rest }) => ({
    ...rest,
    finish_reason: finishReason,
  }));
  return inPart({ answers });
}

/** The served model's name with a profile. */
async function profiled(serving: ServingModel, profile: string, signal: AbortSignal): Promise<string> {
  const { model } = await serving.capabilities({ signal });
  return profileId(String(model), profile);
}

/** A result with a list of truncated values. */
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
    if (kind === undefined) throw new TaplineError("name requires kind: vector, probe or profile.");
    if (kind === "vector") return { vectors: [await serving.vector(name, { signal })] };
    if (kind === "probe") return { probes: [await serving.probe(name, { signal })] };
    return { profiles: [await serving.profile(name, { signal })] };
  }
  const wanted = (one: typeof kind) => kind === undefined || kind === one;
  return {
    ...(wanted("vector") && { vectors: await serving.vectors({ signal }) }),
    ...(wanted("probe") && { probes: await serving.probes({ signal }) }),
    ...(wanted("profile") && { profiles: await serving.profiles({ signal }) }),
  };
}
