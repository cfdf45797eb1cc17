import { useEffect, useState } from "preact/hooks";
import type { InspectResult } from "../../../contracts/index.js";
import { draft } from "../draft.js";
import { labModel, submit, useAsked, usualLayers } from "../jobs.js";
import { parseLayers } from "../lists.js";
import { go, select, usePlace } from "../router.js";
import { known, useTopic } from "../store.js";
import { Attention, chooseHead } from "./attention.js";
import { type Library, useLibrary } from "./edits.js";
import { Area, Check, Choice, Field, LayersField } from "./fields.js";
import { Button, Form, useTrying } from "./form.js";
import { JobResult, LetGo } from "./job-result.js";

/** As many blocks as a job takes. */
const mostLayers = 8;

/** Text in, layer by token map out; a cell goes on to a patch. */
export function InspectView({ id }: { id: string | undefined }) {
  useTopic("state");
  const [prompt, setPrompt] = useState(draft.inspect ?? "The capital of France is");
  const [layers, setLayers] = useState(usualLayers(mostLayers).join(", "));
  const [target, setTarget] = useState("");
  const [attention, setAttention] = useState(false);
  const [routing, setRouting] = useState(false);
  const [decompose, setDecompose] = useState(false);
  const [measures, setMeasures] = useState(true);
  const [lens, setLens] = useState("");
  const library = useLibrary();
  const { problem, trying } = useTrying();
  const { query } = usePlace();
  useEffect(() => {
    draft.inspect = undefined;
  }, []);
  useAsked("inspect", id, (asked) => {
    setPrompt(asked.prompt);
    setLayers(asked.layers.join(", "));
    setTarget(asked.target_token ?? "");
    setAttention(asked.attention !== undefined);
    setRouting(asked.routing === true);
    setDecompose(asked.decompose === true);
    setMeasures(asked.measures ?? asked.lens !== undefined);
    setLens(asked.lens ?? "");
  });
  const routes = known.state?.server.points.includes("router") === true;
  const run = () =>
    trying(async ({ go }) => {
      const job = await submit({
        operation: "inspect",
        model: labModel(),
        prompt,
        layers: parseLayers(layers) ?? usualLayers(mostLayers),
        ...(target === "" ? { follow_answer: true } : { target_token: target }),
        ...(lens !== "" && { lens }),
        ...(measures !== (lens !== "") && { measures }),
        ...(attention && { attention: {} }),
        ...(routes && routing && { routing: true }),
        ...(decompose && { decompose: true }),
      });
      go(`/inspect/${job}`);
    });
  return (
    <div class="page">
      <h1>Inspect</h1>
      <p class="soft">
        One pass over a raw text: what each block's output would answer at every token, and where the answer
        comes from. A click on a cell takes the text and that place to a patch.
      </p>
      <Form onSubmit={run} problem={problem}>
        <Area label="Text" rows={3} value={prompt} onChange={setPrompt} />
        <p class="row">
          <LayersField value={layers} onChange={setLayers} />
          <Field
            label="follow the token"
            value={target}
            placeholder="the model's answer"
            onChange={setTarget}
          />
          <LensField value={lens} onChange={setLens} library={library} />
          <Check checked={measures} onChange={setMeasures}>
            entropy and distance from the output
          </Check>
          <Check checked={attention} onChange={setAttention}>
            attention heads
          </Check>
          {routes && (
            <Check checked={routing} onChange={setRouting}>
              experts
            </Check>
          )}
          <Check checked={decompose} onChange={setDecompose}>
            what the answer's logit is made of
          </Check>
          <button type="submit" class="main" disabled={known.state?.lab.ok !== true || prompt.trim() === ""}>
            Inspect
          </button>
        </p>
      </Form>
      {id !== undefined && (
        <JobResult
          id={id}
          operation="inspect"
          pick={[
            {
              figure: "logit-lens",
              words: "takes this place to a patch",
              act: (_, row, { rows }) => {
                const [layer, position] = rows[row] ?? [];
                select({ l: Number(layer), t: Number(position) });
              },
            },
            {
              figure: "attention-",
              words: "shows this head",
              act: ({ job }, row) => {
                const found = job.result.attention?.[row];
                if (found !== undefined) chooseHead(found.layer, found.head);
              },
            },
          ]}
          below={({ job }) => (
            <Attention
              key={job.id}
              id={job.id}
              name={`tapline-inspect-${job.id.slice(0, 8)}`}
              result={job.result}
            />
          )}
        >
          {({ job }) => <PickedCell result={job.result} query={query} prompt={job.config.prompt} />}
        </JobResult>
      )}
    </div>
  );
}

/** Which lens reads the rows beside the model's own head: those that are kept and fit the served model. */
function LensField({
  value,
  onChange,
  library,
}: {
  value: string;
  onChange: (value: string) => void;
  library: Library | undefined;
}) {
  const server = known.state?.server;
  const lenses = (library?.lenses ?? []).filter(
    ({ n_embd, model_layers }) =>
      n_embd === server?.n_embd && (model_layers === null || model_layers === server.n_layer),
  );
  const kept = lenses.some(({ name }) => name === value);
  const options = [
    ["", lenses.length === 0 ? "logit lens (no other is kept)" : "logit lens"] as const,
    ...(value !== "" && !kept ? [value] : []),
    ...lenses.map(({ name, kind }) => [name, `${name} (${kind})`] as const),
  ];
  return <Choice label="lens" value={value} options={options} onChange={onChange} />;
}

/** The cell that was clicked, and what can be done with it. */
function PickedCell({
  result,
  query,
  prompt,
}: {
  result: InspectResult;
  query: URLSearchParams;
  prompt: string;
}) {
  const [layer, position] = [query.get("l"), query.get("t")].map((text) =>
    text === null ? undefined : Number(text),
  );
  const token = position === undefined ? undefined : result.tokens[position];
  if (layer === undefined || position === undefined || token === undefined) return null;
  return (
    <section class="card" aria-label="Chosen cell">
      <p>
        Chosen: layer {layer}, token {position} <bdi class="token">{token}</bdi>
      </p>
      <p class="row">
        <Button
          class="main"
          onClick={() => {
            // The same text stands on both sides: what is to be different is changed in one of them.
            draft.patch = { clean: prompt, corrupted: prompt };
            go(`/patch?l=${layer}&t=${position}`);
          }}
        >
          Patch here
        </Button>
        <LetGo of={["l", "t"]} />
      </p>
    </section>
  );
}
