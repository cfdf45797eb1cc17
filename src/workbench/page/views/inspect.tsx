import { useEffect } from "preact/hooks";
import type { InspectResult } from "../../../contracts/index.js";
import { count } from "../../../findings/numbers.js";
import { draft } from "../draft.js";
import { labModel, submit, useConfig, usualLayers } from "../jobs.js";
import { numberIn, parseLayers } from "../lists.js";
import { go, select, usePlace } from "../router.js";
import { known, useTopic } from "../store.js";
import { Attention, chooseHead } from "./attention.js";
import { type Library, useLibrary } from "./edits.js";
import { Area, Check, Choice, Field, LayersField } from "./fields.js";
import { Fold } from "./fold.js";
import { Button, Form, useFields, useTrying } from "./form.js";
import { ClearSelection, JobResult } from "./job-result.js";

/** The default number of layers of a job. */
const mostLayers = 8;
/** The Lab's default limit of input tokens, raised for longer answers. */
const usualTokens = 256;

/** Inspects a text; a cell of the map leads to a patch. */
export function InspectView({ id }: { id: string | undefined }) {
  useTopic("state");
  const { fields, set, bind } = useFields(() => ({
    ...{ prompt: "The capital of France is", target: "", lens: "" },
    exact: draft.inspect as ExactTokens | undefined,
    layers: usualLayers(mostLayers).join(", "),
    ...{ attention: false, routing: false, decompose: false, measures: true },
  }));
  const { prompt, exact, layers, target, attention, routing, decompose, measures, lens } = fields;
  const library = useLibrary();
  const { problem, trying } = useTrying();
  const { query } = usePlace();
  useEffect(() => {
    draft.inspect = undefined;
  }, []);
  useConfig("inspect", id, ({ prompt, tokens, layers, target_token: target = "", lens = "", ...config }) =>
    set({
      ...(prompt !== undefined && { prompt }),
      exact: tokens && { tokens, text: undefined },
      ...{ layers: layers.join(", "), target, lens },
      attention: config.attention !== undefined,
      routing: config.routing === true,
      decompose: config.decompose === true,
      measures: config.measures ?? lens !== "",
    }),
  );
  const routes = known.state?.server.points.includes("router") === true;
  const run = () =>
    trying(async ({ go }) => {
      const job = await submit({
        operation: "inspect",
        model: labModel(),
        ...(exact === undefined
          ? { prompt }
          : { tokens: exact.tokens, max_input_tokens: Math.max(usualTokens, exact.tokens.length) }),
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
      <Fold hasResult={id !== undefined}>
        <p class="soft">
          Run one forward pass and see what every layer predicts at every token. Click a cell to patch there.
        </p>
        <Form onSubmit={run} problem={problem}>
          {exact === undefined ? (
            <Area label="Text" rows={3} {...bind("prompt")} />
          ) : (
            <ExactText exact={exact} onText={() => set({ exact: undefined, prompt: exact.text ?? prompt })} />
          )}
          <p class="row">
            <LayersField {...bind("layers")} />
            <Field label="Track token" placeholder="the model's answer" {...bind("target")} />
            <LensField {...bind("lens")} library={library} />
            <Check checked={measures} onChange={(measures) => set({ measures })}>
              Entropy and KL to the final output
            </Check>
            <Check checked={attention} onChange={(attention) => set({ attention })}>
              Attention heads
            </Check>
            {routes && (
              <Check checked={routing} onChange={(routing) => set({ routing })}>
                Experts
              </Check>
            )}
            <Check checked={decompose} onChange={(decompose) => set({ decompose })}>
              Direct logit attribution
            </Check>
            <button
              type="submit"
              class="main"
              disabled={known.state?.lab.ok !== true || (exact === undefined && prompt.trim() === "")}
            >
              Inspect
            </button>
          </p>
        </Form>
      </Fold>
      {id !== undefined && (
        <JobResult
          id={id}
          operation="inspect"
          pick={[
            {
              figure: "logit-lens",
              words: "selects this cell to patch",
              selected: (_, { rows }) => {
                const [layer, position] = [numberIn(query, "l"), numberIn(query, "t")];
                const row = rows.findIndex(([a, b]) => Number(a) === layer && Number(b) === position);
                return row < 0 ? undefined : row;
              },
              detail: ({ job }) => (
                <PickedCell result={job.result} query={query} prompt={job.config.prompt} />
              ),
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
        />
      )}
    </div>
  );
}

/** Token ids, with their text if it is known. */
interface ExactTokens {
  tokens: number[];
  text: string | undefined;
}

/** Token ids that are inspected exactly as given, instead of a text. */
function ExactText({ exact: { tokens, text }, onText }: { exact: ExactTokens; onText: () => void }) {
  return (
    <>
      <p>
        {count(tokens.length, "token")}, exactly as the model read {tokens.length === 1 ? "it" : "them"}
        {text !== undefined && ", with the chat template"}. The Lab runs the unmodified model.
      </p>
      {text !== undefined && (
        <pre class="exact" tabIndex={0} role="region" aria-label="Text of the tokens">
          <bdi>{text}</bdi>
        </pre>
      )}
      <p>
        <Button class="quiet" onClick={onText}>
          Use a text instead
        </Button>
      </p>
    </>
  );
}

/** The logit lens, or a saved lens that fits the served model. */
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
  const isSaved = lenses.some(({ name }) => name === value);
  const options = [
    ["", lenses.length === 0 ? "Logit lens (no others saved)" : "Logit lens"] as const,
    ...(value !== "" && !isSaved ? [value] : []),
    ...lenses.map(({ name, kind }) => [name, `${name} (${kind})`] as const),
  ];
  return <Choice label="Lens" value={value} options={options} onChange={onChange} />;
}

/** The selected cell. */
function PickedCell({
  result,
  query,
  prompt,
}: {
  result: InspectResult;
  query: URLSearchParams;
  /** Absent for token ids. */
  prompt: string | undefined;
}) {
  const [layer, position] = [numberIn(query, "l"), numberIn(query, "t")];
  const token = position === undefined ? undefined : result.tokens[position];
  if (layer === undefined || position === undefined || token === undefined) return null;
  return (
    <section class="card" aria-label="Selected cell">
      <p>
        Selected: layer {layer}, token {position} <bdi class="token">{token}</bdi>
      </p>
      <p class="row">
        {prompt === undefined ? (
          <span class="soft">Patching compares two texts; this job has token ids.</span>
        ) : (
          <Button
            class="main"
            onClick={() => {
              // Start from the same text on both sides; the user changes one of them.
              draft.patch = { clean: prompt, corrupted: prompt };
              go(`/patch?l=${layer}&t=${position}`);
            }}
          >
            Patch here
          </Button>
        )}
        <ClearSelection of={["l", "t"]} />
      </p>
    </section>
  );
}
