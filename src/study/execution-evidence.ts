import type { Execution, ExecutionEvent } from "../contracts/execution.js";
import { type Entry, studyLimits } from "../contracts/studies/index.js";
import { glimpse } from "../report/index.js";
import { cut, publicName } from "../text/words.js";
import { type Evidence, Gatherer } from "./evidence.js";

type Message = { role?: unknown; content?: unknown };
type Input = Record<string, unknown> & { messages?: unknown; prompt?: unknown };

const roles = ["system", "user", "assistant"] as const;

/** One request to a serving model as an entry: the conversation before it, the question, the answer. */
export function executionEvidence(execution: Execution, runtime: string): Evidence {
  const gatherer = new Gatherer();
  const name = `request ${execution.id.slice(0, 8)}`;
  const input = asInput(execution.input);
  const { messages, prompt, ...parameters } = input;
  const conversation = readMessages(messages, gatherer, name);
  const failed = execution.status === "failed";
  gatherer.add({
    kind: failed ? "error" : "result",
    title: `${execution.endpoint}: ${glimpse(conversation.prompt ?? textOf(prompt) ?? execution.preview, 200)}`,
    ...conversation,
    ...(conversation.prompt === undefined && textOf(prompt) !== undefined ? { prompt: textOf(prompt) } : {}),
    ...answerOf(execution.events),
    ...settingsOf(parameters, execution.thinking),
    finishReason:
      execution.finish_reason === null ? null : cut(execution.finish_reason, studyLimits.finish_reason),
    note: [
      `Request ${execution.id}, ${new Date(execution.started * 1000).toISOString()}, ${execution.status}.`,
      `Parameters: ${JSON.stringify({ ...parameters, model: publicName(execution.model) })}`,
      `Usage: ${JSON.stringify(execution.usage)}`,
      ...execution.events.filter(({ kind }) => kind === "error").map(({ text }) => `Error: ${text}`),
    ].join("\n"),
  });
  if (execution.truncated) {
    gatherer.omissions.push(`Text of ${name} beyond the execution inspector's limit.`);
  }
  const others = new Set(execution.events.map(({ choice }) => choice).filter((choice) => choice > 0)).size;
  if (others > 0) gatherer.omissions.push(`Choices of ${name} other than the first: ${others}.`);
  if (execution.events.some(({ kind }) => kind === "tool")) gatherer.omissions.push(`Tool calls of ${name}.`);
  return {
    model: {
      name: cut(publicName(execution.model) || "a model", studyLimits.model_name),
      revision: null,
      runtime,
    },
    method: `A request to ${execution.endpoint} of a serving model, as recorded by its execution inspector.`,
    entries: gatherer.entries,
    spare: gatherer.spare,
    omissions: gatherer.omissions,
  };
}

function asInput(input: unknown): Input {
  if (typeof input === "string") return { prompt: input };
  return typeof input === "object" && input !== null && !Array.isArray(input) ? (input as Input) : {};
}

/** System prompt, earlier messages, and the user's last question. */
function readMessages(
  messages: unknown,
  gatherer: Gatherer,
  name: string,
): Pick<Entry, "system" | "context" | "prompt"> {
  if (!Array.isArray(messages)) return {};
  let omitted = 0;
  const known = messages.flatMap(({ role, content }: Message) => {
    const valid = roles.find((candidate) => candidate === role);
    const text = textOf(content);
    if (valid === undefined || text === undefined) {
      omitted += 1;
      return [];
    }
    return [{ role: valid, content: cut(text, studyLimits.long_text) }];
  });
  const system = known[0]?.role === "system" ? known.shift()?.content : undefined;
  const prompt = known.at(-1)?.role === "user" ? known.pop()?.content : undefined;
  const context = known.slice(-studyLimits.context_messages);
  omitted += known.length - context.length;
  if (omitted > 0) {
    gatherer.omissions.push(
      `Messages of ${name} that are not plain text by system, user or assistant, or exceed the limit: ${omitted}.`,
    );
  }
  return {
    ...(system === undefined ? {} : { system }),
    ...(context.length === 0 ? {} : { context }),
    ...(prompt === undefined ? {} : { prompt }),
  };
}

/** Plain text, or a list of parts that are all text. */
function textOf(content: unknown): string | undefined {
  if (typeof content === "string") return content;
  if (!Array.isArray(content) || content.length === 0) return undefined;
  const texts = content.map((part) =>
    typeof part === "string" ? part : part?.type === "text" ? part.text : undefined,
  );
  return texts.every((text) => typeof text === "string") ? texts.join("") : undefined;
}

function answerOf(events: readonly ExecutionEvent[]): Pick<Entry, "answer" | "thinking"> {
  const joined = (kind: ExecutionEvent["kind"]) =>
    events
      .filter((event) => event.kind === kind && event.choice === 0)
      .map(({ text }) => text)
      .join("");
  const [answer, thinking] = [joined("output"), joined("thinking")];
  return { answer, ...(thinking === "" ? {} : { thinking }) };
}

/** Only if the request set all of them: the contract cannot express “the server's default”. */
function settingsOf(parameters: Record<string, unknown>, thinking: boolean | null): Pick<Entry, "settings"> {
  const { temperature, seed, max_tokens: maxTokens } = parameters;
  const stated =
    typeof temperature === "number" &&
    temperature >= 0 &&
    temperature <= studyLimits.temperature &&
    Number.isSafeInteger(seed) &&
    Number.isSafeInteger(maxTokens) &&
    (maxTokens as number) > 0 &&
    (maxTokens as number) <= studyLimits.max_tokens;
  if (!stated) return {};
  return {
    settings: {
      temperature,
      seed: seed as number,
      maxTokens: maxTokens as number,
      thinking: thinking === null ? "default" : thinking ? "on" : "off",
    },
  };
}
