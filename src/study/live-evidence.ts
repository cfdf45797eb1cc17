import { studyLimits } from "../contracts/studies/index.js";
import { glimpse } from "../report/index.js";
import { cut, publicName } from "../text/words.js";
import { type Evidence, Gatherer } from "./evidence.js";

/** Requests to a serving model, and its answers. */
export interface LiveWork {
  id: string;
  what: string;
  /** The method in one sentence. */
  method: string;
  /** The requests as sent. */
  request: unknown;
  /** Questions and answers, if any. */
  exchanges: readonly { asked: string; answer: string; finish: string }[];
  /** The complete result. */
  result: unknown;
}

/** Requests to a serving model as entries: the questions, the answer to each, and everything as JSON. */
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
    answer: lines.length === 0 ? `${what}: done.` : lines.join("\n"),
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
