import { jobRequest, labModel, submit } from "../jobs.js";
import { linesOf, numberIn } from "../lists.js";
import { select, usePlace } from "../router.js";
import { known, useTopic } from "../store.js";
import { AddDictionary } from "./add-dictionary.js";
import { useLibrary } from "./edits.js";
import { FeatureCard } from "./feature-page.js";
import { FeatureSearchCard } from "./feature-search.js";
import { Choice, Field, TextsField } from "./fields.js";
import { Fold } from "./fold.js";
import { Form, useDraft, useTrying } from "./form.js";
import { JobResult } from "./job-result.js";
import { LibraryTools } from "./library-tools.js";
import { ScriptMenu } from "./request-code.js";
import { TrainDictionary } from "./train-dictionary.js";

/** The form, kept while other views are open. */
const draft = {
  dictionary: "",
  texts: "The capital of France is\nThe capital of Japan is",
  pages: "",
  labels: "",
};

/** Reads texts through a saved sparse dictionary: the fit, the active features, and single features. */
export function FeaturesView({ id }: { id: string | undefined }) {
  useTopic("state");
  const library = useLibrary();
  const { query } = usePlace();
  const { problem, trying } = useTrying();
  const { set, bind } = useDraft(draft);
  const dictionaries = library?.dictionaries ?? [];
  const chosen = draft.dictionary || dictionaries[0]?.name;
  const feature = numberIn(query, "f", /^\d{1,8}$/);
  const job = () => {
    const pages = parseFeatures(draft.pages);
    const labels = draft.labels.trim();
    return {
      ...{ operation: "features", model: labModel(), dictionary: chosen, texts: linesOf(draft.texts) },
      ...(pages.length > 0 && { pages }),
      ...(pages.length > 0 && labels !== "" && { labels }),
    };
  };
  const run = () =>
    trying(async ({ go }) => {
      const asked = job();
      const [only, ...more] = asked.pages ?? [];
      const alone = only !== undefined && more.length === 0;
      go(`/features/${await submit(asked)}${alone ? `?f=${only}` : ""}`);
    });
  return (
    <div class="page">
      <h1>Features</h1>
      <Fold hasResult={id !== undefined}>
        <p class="soft">
          A sparse dictionary splits a layer's output into features. Check the fit first: if the dictionary
          fits these texts badly, its features mean nothing here.
        </p>
        <Form onSubmit={run} problem={problem}>
          <TextsField label="Texts" {...bind("texts")} />
          <div class="row">
            <Choice
              label="Dictionary"
              value={chosen}
              options={dictionaries.map(({ name, features, layer }) => [
                name,
                `${name}, ${features} features at layer ${layer}`,
              ])}
              onChange={(dictionary) => set({ dictionary })}
            />
            <Field
              label="Features"
              class="layers"
              placeholder="optional: up to 16 indices"
              {...bind("pages")}
            />
            <Field label="Labels" class="labels" placeholder="optional: file or URL" {...bind("labels")} />
            <button
              type="submit"
              class="main"
              disabled={chosen === undefined || known.state?.lab.ok !== true}
            >
              Run
            </button>
            {chosen !== undefined && <ScriptMenu of="run" request={() => jobRequest(job())} />}
          </div>
          {library !== undefined && dictionaries.length === 0 && (
            <p class="soft">No dictionaries yet. Train or add one below.</p>
          )}
        </Form>
        <TrainDictionary onSaved={(dictionary) => set({ dictionary })} />
        <AddDictionary onAdded={(dictionary) => set({ dictionary })} />
        {dictionaries.length > 0 && (
          <ul class="plain row" aria-label="Saved dictionaries">
            {dictionaries.map(({ name }) => (
              <li key={name} class="row">
                <bdi>{name}</bdi> <LibraryTools kind="dictionaries" name={name} />
              </li>
            ))}
          </ul>
        )}
      </Fold>
      {id !== undefined && (
        <JobResult
          id={id}
          operation="features"
          // A feature's card has what its figures show.
          shows={(figure) => feature === undefined && !figure.startsWith("feature-")}
          pick={[
            {
              figure: "strongest-features",
              words: "shows this feature",
              act: (_, row, { rows }) => select({ f: String(rows[row]?.[0]).replace(/^feature /, "") }),
            },
          ]}
        >
          {(findings) =>
            feature === undefined ? (
              <FeatureSearchCard result={findings.job.result} />
            ) : (
              <FeatureCard findings={findings} feature={feature} />
            )
          }
        </JobResult>
      )}
    </div>
  );
}

/** @returns feature indices @throws Error */
export function parseFeatures(text: string): number[] {
  const parts = text.split(/[\s,]+/).filter((part) => part !== "");
  const odd = parts.find((part) => !/^\d{1,8}$/.test(part));
  if (odd !== undefined) throw new Error(`Features: expected indices such as 12, 4031; got ${odd}.`);
  return [...new Set(parts.map(Number))];
}
