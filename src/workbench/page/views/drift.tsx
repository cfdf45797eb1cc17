import { jobRequest, labModel, submit, useConfig, usualLayers } from "../jobs.js";
import { linesOf, parseLayers } from "../lists.js";
import { known, useTopic } from "../store.js";
import { useLibrary } from "./edits.js";
import { Choice, LayersField, TextsField } from "./fields.js";
import { Fold } from "./fold.js";
import { Form, useDraft, useTrying } from "./form.js";
import { JobResult } from "./job-result.js";
import { ModelField, useModelNames } from "./model-field.js";
import { ScriptMenu } from "./request-code.js";

/** The form, kept while other views are open. */
const draft = {
  models: ["", ""] as [string, string],
  texts: [
    "The capital of France is Paris.",
    "Water freezes at zero degrees.",
    "She opened the door and went outside.",
    "The train arrives at nine in the evening.",
    "A square has four sides of equal length.",
    "He wrote a letter to his brother.",
  ].join("\n"),
  layers: "",
  dictionary: "",
};

/** What changes between two models of the same shape, over many texts. */
export function DriftView({ id }: { id: string | undefined }) {
  useTopic("state");
  const { set, bind } = useDraft(draft);
  const { problem, trying } = useTrying();
  const library = useLibrary();
  const names = useModelNames();
  useConfig("drift", id, ({ model, other, examples, layers, dictionary = "" }) =>
    set({
      models: [model, other],
      texts: examples.map(({ text }) => text.replace(/\s*\n\s*/g, " ")).join("\n"),
      layers: layers.join(", "),
      dictionary,
    }),
  );
  const usual = usualLayers(8);
  const job = () => ({
    operation: "drift",
    model: draft.models[0] || labModel(),
    other: draft.models[1] || labModel(),
    examples: linesOf(draft.texts).map((text) => ({ text })),
    layers: parseLayers(draft.layers) ?? usual,
    ...(draft.dictionary !== "" && { dictionary: draft.dictionary }),
  });
  const run = () => trying(async ({ go }) => go(`/drift/${await submit(job())}`));
  const dictionaries = library?.dictionaries ?? [];
  const same = (draft.models[0] || names[0]) === (draft.models[1] || names[0]);
  return (
    <div class="page">
      <h1>Drift</h1>
      <Fold hasResult={id !== undefined}>
        <p class="soft">
          How far two models of the same shape differ inside, such as a model and its quantized form: the
          distance of their block outputs over many texts, with intervals.
        </p>
        <Form onSubmit={run} problem={problem}>
          <p class="row">
            {(["First model", "Second model"] as const).map((label, at) => (
              <ModelField
                key={label}
                label={label}
                names={names}
                value={draft.models[at] ?? ""}
                onChange={(model) =>
                  set({ models: at === 0 ? [model, draft.models[1]] : [draft.models[0], model] })
                }
              />
            ))}
          </p>
          {same && <p class="soft">Both are the same model, so nothing will differ. Choose another one.</p>}
          <TextsField label="Texts" {...bind("texts")} />
          <div class="row">
            <LayersField {...bind("layers")} placeholder={usual.join(", ")} />
            {dictionaries.length > 0 && (
              <Choice
                label="Dictionary"
                options={[["", "none"], ...dictionaries.map(({ name }) => name)]}
                {...bind("dictionary")}
              />
            )}
            <button type="submit" class="main" disabled={known.state?.lab.ok !== true}>
              Measure drift
            </button>
            <ScriptMenu of="measure drift" request={() => jobRequest(job())} />
          </div>
        </Form>
      </Fold>
      {id !== undefined && <JobResult id={id} operation="drift" />}
    </div>
  );
}
