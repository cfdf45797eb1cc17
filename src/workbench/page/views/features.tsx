import { jobRequest, labModel, submit } from "../jobs.js";
import { linesOf } from "../lists.js";
import { select, usePlace } from "../router.js";
import { known, useTopic } from "../store.js";
import { useLibrary } from "./edits.js";
import { FeatureCard } from "./feature-page.js";
import { Choice, Field, TextsField } from "./fields.js";
import { Form, useKept, useTrying } from "./form.js";
import { JobResult } from "./job-result.js";
import { RequestCode } from "./request-code.js";

/** What is read through a dictionary; kept while one looks at other views. */
const draft = {
  dictionary: "",
  texts: "The capital of France is\nThe capital of Japan is",
  pages: "",
  labels: "",
};

/** Texts read through a stored sparse dictionary: how well it fits them, what is active where, and single features. */
export function FeaturesView({ id }: { id: string | undefined }) {
  useTopic("state");
  const library = useLibrary();
  const { query } = usePlace();
  const { problem, trying } = useTrying();
  const set = useKept(draft);
  const dictionaries = library?.dictionaries ?? [];
  const chosen = draft.dictionary || dictionaries[0]?.name;
  const picked = query.get("f");
  const feature = picked !== null && /^\d{1,8}$/.test(picked) ? Number(picked) : undefined;
  const job = () => {
    const pages = parseFeatures(draft.pages);
    const labels = draft.labels.trim();
    return {
      ...{ operation: "features", model: labModel(), dictionary: chosen, texts: linesOf(draft.texts) },
      ...(pages.length > 0 && { pages }),
      ...(pages.length > 0 && labels !== "" && { labels }),
    };
  };
  const read = () =>
    trying(async ({ go }) => {
      const asked = job();
      const [only, ...more] = asked.pages ?? [];
      const alone = only !== undefined && more.length === 0;
      go(`/features/${await submit(asked)}${alone ? `?f=${only}` : ""}`);
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
          <Choice
            label="dictionary"
            value={chosen}
            options={dictionaries.map(({ name, features, layer }) => [
              name,
              `${name}, ${features} features at block ${layer}`,
            ])}
            onChange={(dictionary) => set({ dictionary })}
          />
          <Field
            label="features to look at"
            class="layers"
            value={draft.pages}
            placeholder="none yet; up to 16 numbers"
            onChange={(pages) => set({ pages })}
          />
          <Field
            label="their labels"
            class="labels"
            value={draft.labels}
            placeholder="none, a file or an address"
            onChange={(labels) => set({ labels })}
          />
          <button type="submit" class="main" disabled={chosen === undefined || known.state?.lab.ok !== true}>
            Read
          </button>
        </p>
        {chosen !== undefined && <RequestCode of="read" request={() => jobRequest(job())} />}
        {library !== undefined && dictionaries.length === 0 && (
          <p class="soft">
            No dictionary is kept. In a terminal: <code>tapline dictionary add NAME owner/name/folder</code>
          </p>
        )}
      </Form>
      {id !== undefined && (
        <JobResult
          id={id}
          operation="features"
          shows={(figure) =>
            feature === undefined ? !figure.startsWith("feature-") : figure.startsWith(`feature-${feature}-`)
          }
          pick={[
            {
              figure: "strongest-features",
              words: "opens this feature",
              act: (_, row, { rows }) => select({ f: String(rows[row]?.[0]).replace(/^feature /, "") }),
            },
          ]}
        >
          {(findings) =>
            feature === undefined ? null : <FeatureCard findings={findings} feature={feature} />
          }
        </JobResult>
      )}
    </div>
  );
}

/** @returns indices of features @throws Error */
export function parseFeatures(text: string): number[] {
  const parts = text.split(/[\s,]+/).filter((part) => part !== "");
  const odd = parts.find((part) => !/^\d{1,8}$/.test(part));
  if (odd !== undefined) throw new Error(`Features are numbers as 12, 4031; got ${odd}.`);
  return [...new Set(parts.map(Number))];
}
