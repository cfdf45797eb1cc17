/** The serving application on a stand-in for the engine: its calls of the engine, and its answers. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Listening, listen } from "../../../src/http/index.js";
import { inferenceApp } from "../../../src/inference/app.js";
import type { LiveLibrary } from "../../../src/inference/live/library.js";
import { createService, type InferenceService, type ServiceParts } from "../../../src/inference/service.js";
import type { EngineInfo, EngineReply } from "../../../src/native/engine.js";
import type { LivePlan } from "../../../src/native/live.js";
import { type Answer, send } from "../../support/request.js";

type Body = Record<string, unknown>;

/** The requests that a stand-in received. */
export interface ReceivedRequest {
  route: string;
  body: Body;
  live?: LivePlan;
}

export type Reply = (
  asked: ReceivedRequest,
  signal: AbortSignal,
) => Partial<EngineReply> | Promise<Partial<EngineReply>>;

export interface Stand {
  asked: ReceivedRequest[];
  service: InferenceService;
  url: string;
  /** Faults of the application's own. */
  faults: string[];
  send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** From now on connections come from this address. */
  comeFrom(address: string): void;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Sends a request and returns the engine's view of it. */
  engine(path: string, body: unknown): Promise<ReceivedRequest>;
  /** Asks for what is refused. */
  refusal(path: string, body: unknown): Promise<[status: number, message: string, param: string | null]>;
}

export const chatAnswer = {
  id: "x",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, text: "Hi", finish_reason: "stop" }],
  usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
};

const open: Listening[] = [];
test.after(async () => {
  for (const listening of open) await listening.close();
});

export const usual: Reply = ({ route }) =>
  route === "apply-template"
    ? { body: JSON.stringify({ prompt: "<made>" }) }
    : route === "tokenize"
      ? { body: JSON.stringify({ tokens: [1, 2, 3, 4, 5] }) }
      : route === "detokenize"
        ? { body: JSON.stringify({ content: "said" }) }
        : {};

/** @param functions further ones of the engine */
export async function stand(
  info: Partial<EngineInfo> = {},
  parts: Partial<ServiceParts> = {},
  reply: Reply = usual,
  functions: object = {},
): Promise<Stand> {
  const asked: ReceivedRequest[] = [];
  const engine = {
    info: {
      ...{ id: "m", slots: 2, slotContext: 100, nLayer: 4, nEmbd: 2, nVocab: 50, captures: true },
      ...{
        noCaptureReason: "No captures here.",
        images: false,
        thinking: true,
        thinkingTag: "<think>",
        templateSupportsThinking: true,
      },
      ...{ templateCapabilities: { supports_tools: true, supports_tool_calls: true }, points: [], ...info },
    },
    request: async (route: string, body: Body, signal: AbortSignal, live?: LivePlan) => {
      asked.push({ route, body, ...(live && { live }) });
      const told = await reply({ route, body }, signal);
      return {
        ...{ status: 200, contentType: "application/json", body: JSON.stringify(chatAnswer) },
        ...{ times: [], parts: null, ...told },
      };
    },
    ...functions,
  };
  const service = createService(
    {
      ...{ engine, backend: { backend: "test" }, resolved: {}, requestedModel: "m", requestedRevision: null },
      library: {
        model: { id: "m" },
        profiles: { names: async () => [], allFor: async () => [] },
      } as unknown as LiveLibrary,
      ...parts,
    } as unknown as ServiceParts,
    1000,
  );
  const faults: string[] = [];
  const listening = await listen(
    inferenceApp(service, (line) => void faults.push(line)),
    { port: 0 },
  );
  open.push(listening);
  const { url, server } = listening;
  const ask: Stand["send"] = (method, path, body, headers) => send(url + path, method, body, headers);
  const post: Stand["post"] = (path, body, headers) => ask("POST", path, body, headers);
  return {
    ...{ asked, service, url, faults, post, send: ask },
    comeFrom(address) {
      server.prependListener("connection", (socket: object) =>
        Object.defineProperty(socket, "remoteAddress", { value: address, configurable: true }),
      );
    },
    async engine(path, body) {
      asked.length = 0;
      const answer = await post(path, body);
      assert.is(answer.status, 200, `${path} ${answer.bytes}`);
      return asked.at(-1) as ReceivedRequest;
    },
    async refusal(path, body) {
      asked.length = 0;
      const { status, body: told } = await post(path, body);
      assert.equal(asked, [], "the engine is not asked");
      return [status, told.error.message, told.error.param];
    },
  };
}
