import { studyLimits } from "../contracts/studies/index.js";
import { glimpse } from "../report/index.js";
import { cut, publicName } from "../text/words.js";
import { type Evidence, Gatherer } from "./evidence.js";

/** Something that was asked of a serving model, and what it answered. */
export interface LiveWork {
  id: string;
  what: string;
  /** How it was asked, in a sentence. */
  method: string;
  /** The requests, as they were sent. */
  request: unknown;
  /** Questions and answers, where there are any. */
  exchanges: readonly { asked: string; answer: string; finish: string }[];
  /** Everything that was answered. */
  result: unknown;
}

/** Requests to a serving model as entries: what was asked, question by question what was answered, and all of it as JSON. */
export function liveEvidence(work: LiveWork, model: string, runtime: string): Evidence {
  const { id, what, method, request, exchanges, result } = work;
  const gatherer = new Gatherer();
  const asked = gatherer.add({
    kind: "prompt",
    title: `${id}: ${glimpse(what, 180)}`,
    ...(exchanges.length === 0 ? {} : { prompt: exchanges.map((each) => each.asked).join("\n") }),
  });
  gatherer.addText(asked, `Requests of ${id}`, JSON.stringify(request, null, 1), `The requests of ${id}`);
  const lines = exchanges.map(({ asked: question, answer, finish }) =>
    [question, answer, finish].map((text) => text.replaceAll("\n", " ")).join(" | "),
  );
  const made = gatherer.add({
    parent: asked,
    kind: "result",
    title: `Result of ${id}`,
    answer: lines.length === 0 ? `${what}: made.` : lines.join("\n"),
  });
  const json = JSON.stringify(result);
  gatherer.addText(made, `Result of ${id} as JSON`, json, `The whole result of ${id} as JSON`);
  const name = cut(publicName(model) || "a model", studyLimits.model_name);
  return {
    model: { name, revision: null, runtime: cut(runtime, studyLimits.model_runtime) },
    method,
    entries: gatherer.entries,
    spare: gatherer.spare,
    omissions: gatherer.omissions,
  };
}
