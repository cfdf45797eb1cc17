import type { Execution } from "../../src/contracts/execution.js";
import type { Job } from "../../src/contracts/index.js";
import type { ReportedJob } from "../../src/report/index.js";
import type { Words } from "../../src/study/index.js";

export const words: Words = {
  title: "Where the capital comes up",
  question: "At which block can the capital be read off?",
  hypothesis: "",
  method: "As described.",
  finding: "At block 6.",
  limitations: "One small model.",
  license: "CC0-1.0",
  omissions: ["Earlier tries."],
};

/** A job as the Lab has it, from one that a report is made of. */
export function labJob({ operation, result, id }: ReportedJob, config: object, extra: object = {}): Job {
  return {
    id: id as string,
    created: 1_700_000_000,
    started: 1_700_000_001,
    ended: 1_700_000_002,
    status: "completed",
    operation,
    model: "/home/ada/private folder/small.gguf",
    progress: { stage: "completed", done: 1, total: 1 },
    config: {
      operation,
      model: "/home/ada/private folder/small.gguf",
      layers: [3],
      seed: 0,
      max_tokens: 32,
      max_input_tokens: 256,
      ...config,
    },
    result: {
      ...result,
      provenance: {
        ...result.provenance,
        requested_model: "/home/ada/private folder/small.gguf",
        resolved_model: { path: "/home/ada/private folder/small.gguf", repository: null, commit: null },
      },
    },
    ...extra,
  } as Job;
}

export function execution(changes: Partial<Execution> = {}): Execution {
  const event = (kind: "thinking" | "output" | "tool" | "error", text: string, choice = 0) => ({
    id: 0,
    kind,
    text,
    time: 1,
    updated: 1,
    choice,
  });
  return {
    id: "f".repeat(32),
    parent_id: null,
    endpoint: "/v1/chat/completions",
    started: 1_700_000_000,
    ended: 1_700_000_001,
    status: "completed",
    model: "tapline-demo",
    thinking: true,
    stream: false,
    truncated: false,
    finish_reason: "stop",
    output_tokens: 3,
    usage: { completion_tokens: 3 },
    preview: "Paris.",
    input: {
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello" },
        { role: "assistant", content: "Hello." },
        { role: "user", content: [{ type: "text", text: "What is the capital of France?" }] },
      ],
      temperature: 0,
      seed: 4,
      max_tokens: 64,
    },
    events: [
      event("thinking", "Hm. "),
      event("thinking", "France."),
      event("output", "Par"),
      event("output", "is."),
    ],
    ...changes,
  };
}
