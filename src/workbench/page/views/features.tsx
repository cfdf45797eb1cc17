import { labModel, submit } from "../jobs.js";
import { go } from "../router.js";
import { known, useTopic } from "../store.js";
import { useLibrary } from "./edits.js";
import { Form, useKept, useTrying } from "./form.js";
import { JobResult } from "./job-result.js";
import { linesOf, TextsField } from "./texts-field.js";

/** What is read through a dictionary; kept while one looks at other views. */
const draft = { dictionary: "", texts: "The capital of France is\nThe capital of Japan is" };

/** Texts read through a stored sparse dictionary: how well it fits them, and what is active where. */
export function FeaturesView({ id }: { id: string | undefined }) {
  useTopic("state");
  const library = useLibrary();
  const { problem, trying } = useTrying();
  const set = useKept(draft);
  const dictionaries = library?.dictionaries ?? [];
  const chosen = draft.dictionary || dictionaries[0]?.name;
  const read = () =>
    trying(async () => {
      const texts = linesOf(draft.texts);
      const job = await submit({ operation: "features", model: labModel(), dictionary: chosen, texts });
      go(`/features/${job}`);
    });
  return (
    <div class="page">
      <h1>Features</h1>
      <p class="soft">
        A sparse dictionary takes a block's output apart into features. How well it fits these texts stands
        first: the rest means nothing where it does not.
      </p>
      <Form onSubmit={read} problem={problem}>
        <TextsField label="Texts" value={draft.texts} onChange={(texts) => set({ texts })} />
        <p class="row">
          <label>
            dictionary{" "}
            <select value={chosen} onChange={(event) => set({ dictionary: event.currentTarget.value })}>
              {dictionaries.map(({ name, features, layer }) => (
                <option key={name} value={name}>
                  {`${name}, ${features} features at block ${layer}`}
                </option>
              ))}
            </select>
          </label>
          <button type="submit" class="main" disabled={chosen === undefined || known.state?.lab.ok !== true}>
            Read
          </button>
        </p>
        {library !== undefined && dictionaries.length === 0 && (
          <p class="soft">
            No dictionary is kept. In a terminal: <code>tapline dictionary add NAME owner/name/folder</code>
          </p>
        )}
      </Form>
      {id !== undefined && <JobResult id={id} />}
    </div>
  );
}
