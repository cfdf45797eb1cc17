import { useState } from "preact/hooks";
import { licenses } from "../../../contracts/studies/licenses.js";
import { studyLimits } from "../../../contracts/studies/limits.js";
import type { StudyDraft } from "../../wire.js";
import { savedWords, saveWords } from "../draft.js";
import { select } from "../router.js";
import { post } from "../session.js";
import { useWork } from "../store.js";
import { noWords, type StudyWords } from "../study.js";
import { CommandCode } from "./command-code.js";
import { Area, Choice } from "./fields.js";
import { Button, Form, useTrying } from "./form.js";
import { saveText } from "./picture.js";

type Text = Exclude<keyof StudyWords, "omissions" | "license">;

/** The fields that the author fills in, with hints. */
const fields: { name: Text; label: string; hint: string; rows: number }[] = [
  { name: "title", label: "Title", hint: `at most ${studyLimits.title} characters`, rows: 1 },
  { name: "question", label: "Question", hint: "what did you ask?", rows: 2 },
  {
    name: "hypothesis",
    label: "Hypothesis",
    hint: "what did you expect before you looked? Optional",
    rows: 2,
  },
  {
    name: "method",
    label: "Method",
    hint: "starts with the jobs' settings; explain your choices",
    rows: 4,
  },
  { name: "finding", label: "Finding", hint: "what came out? Optional", rows: 3 },
  { name: "limitations", label: "Limitations", hint: "what does it not show?", rows: 3 },
];

/** Turns jobs into a study: tapline provides the measurements, the author the text. */
export function StudyDraftCard({ jobs }: { jobs: string[] }) {
  const [words, setWords] = useState<StudyWords>(savedWords);
  const [drafted, setDrafted] = useState<StudyDraft>();
  const { problem, trying } = useTrying();
  const set = (change: Partial<StudyWords>) =>
    setWords((before) => {
      const after = { ...before, ...change };
      saveWords(after);
      return after;
    });
  const ask = () => post<StudyDraft>("/api/studies", { jobs, words });
  const key = jobs.join();
  useWork([key], (isOver) => {
    if (jobs.length === 0) setDrafted(undefined);
    else
      void trying(async () => {
        const found = await ask();
        if (isOver()) return;
        // Follow the jobs until the author edits the method.
        setWords((before) => {
          const own = before.method.trim() !== "" && before.method !== drafted?.method;
          return own ? before : { ...before, method: found.method };
        });
        setDrafted({ ...found, faults: [] });
      });
  });
  const save = (kind: "package" | "words") =>
    trying(async () => {
      const found = await ask();
      setDrafted(kind === "words" ? { ...found, faults: [] } : found);
      if (kind === "words") saveText("words.md", "text/markdown", found.words);
      else if (found.package !== undefined) saveText("tapline-study.json", "application/json", found.package);
    });
  return (
    <section aria-label="Study draft" class="study">
      <h2>Study draft</h2>
      <p class="soft">
        {jobs.length === 0
          ? "Select the jobs to include."
          : "tapline adds the measurements and the settings under Method. You write the rest."}
      </p>
      {jobs.length > 0 && (
        <Form onSubmit={() => save("package")} problem={problem}>
          {fields.map(({ name, label, hint, rows }) => (
            <Area
              key={name}
              {...{ label, hint, rows }}
              value={words[name]}
              onChange={(text) => set({ [name]: text })}
            />
          ))}
          <Area
            label="Omissions"
            hint="what you left out and why, one per line; tapline adds its own"
            rows={2}
            value={words.omissions.join("\n")}
            onChange={(text) => set({ omissions: text.split("\n") })}
          />
          <p class="row">
            <Choice
              label="License"
              value={words.license}
              options={[["", "choose one"], ...licenses]}
              onChange={(license) => set({ license })}
            />
            <button type="submit" class="main">
              Save package
            </button>
            <Button onClick={() => void save("words")}>Save text only (words.md)</Button>
            <Button
              class="quiet"
              onClick={() => {
                saveWords(undefined);
                setWords({ ...noWords, method: drafted?.method ?? "" });
              }}
            >
              Clear all fields
            </Button>
          </p>
          {drafted !== undefined && drafted.faults.length > 0 && (
            <div class="problem" role="alert">
              <p>Not ready to save yet:</p>
              <ul>
                {drafted.faults.map((fault) => (
                  <li key={fault}>{fault}</li>
                ))}
              </ul>
            </div>
          )}
          {drafted !== undefined && <Evidence drafted={drafted} />}
        </Form>
      )}
      {jobs.length > 0 && (
        <CommandCode
          lines={[
            `tapline study package --job ${jobs.join(" ")} --words words.md --draft`,
            "# or, for a saved package:",
            "tapline study draft tapline-study.json",
          ]}
        />
      )}
      <p>
        <Button class="quiet" onClick={() => select({ study: undefined })}>
          Close draft
        </Button>
      </p>
    </section>
  );
}

/** The evidence that tapline adds to the package, and what it leaves out. */
function Evidence({ drafted: { entries, omissions } }: { drafted: StudyDraft }) {
  return (
    <details>
      <summary>
        {entries.length === 1 ? "1 entry" : `${entries.length} entries`} of evidence
        {omissions.length > 0 && `, ${omissions.length} omitted`}
      </summary>
      <ul>
        {entries.map(({ kind, title }, at) => (
          <li key={at}>
            {kind}: <bdi>{title}</bdi>
          </li>
        ))}
      </ul>
      {omissions.length > 0 && (
        <>
          <p>Omitted by tapline:</p>
          <ul>
            {omissions.map((line) => (
              <li key={line}>
                <bdi>{line}</bdi>
              </li>
            ))}
          </ul>
        </>
      )}
    </details>
  );
}
