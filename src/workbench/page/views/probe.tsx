import { useState } from "preact/hooks";
import type { ProbeResult } from "../../../contracts/index.js";
import { heldOut, mostWrong } from "../../../findings/probe.js";
import { chatSettings } from "../chat-settings.js";
import { type LabelledText, readExamples, withSplits } from "../examples.js";
import { jobRequest, labModel, submit, usualLayers } from "../jobs.js";
import { linesOf, parseLayers } from "../lists.js";
import { known, useTopic } from "../store.js";
import { ChatLink } from "./chat-settings.js";
import { useLibrary } from "./edits.js";
import { Choice, LayersField, TextsField } from "./fields.js";
import { Fold } from "./fold.js";
import { Button, Form, useDraft, useTrying } from "./form.js";
import { JobResult } from "./job-result.js";
import { LibraryTools } from "./library-tools.js";
import { ScriptMenu } from "./request-code.js";
import { SaveProbe } from "./save-probe.js";
import { DataTable } from "./table.js";

/** Maximum size of a file of examples, in bytes. */
const mostBytes = 2_000_000;
/** The number of texts listed per layer. */
const worstShown = 10;

const praise = ["good", "great", "wonderful", "lovely", "superb", "excellent"];
const blame = ["bad", "poor", "awful", "boring", "weak", "terrible"];
const review = (words: string[]) =>
  words.map((word) => `The review says that the film was ${word}.`).join("\n");

const activations = [
  ["last", "last token"],
  ["mean", "mean over tokens"],
  ["all", "every token"],
] as const;

/** The form, kept while other views are open. */
const draft: {
  name: string;
  positive: string;
  negative: string;
  /** Which activations of a text the probe is trained on. */
  rows: (typeof activations)[number][0];
  /** Examples from a file, instead of the two lists. */
  file: { name: string; examples: LabelledText[] } | undefined;
} = { name: "praise", positive: review(praise), negative: review(blame), rows: "last", file: undefined };

/** Trains a linear probe on two lists of texts: as a job with controls, or saved for the chat. */
export function ProbeView({ id }: { id: string | undefined }) {
  useTopic("state");
  const library = useLibrary();
  const [layers, setLayers] = useState(usualLayers(4).join(", "));
  const { problem, trying } = useTrying();
  const { set, bind } = useDraft(draft);
  const examples: LabelledText[] = draft.file?.examples ?? [
    ...linesOf(draft.positive).map((text) => ({ text, label: 1 as const })),
    ...linesOf(draft.negative).map((text) => ({ text, label: 0 as const })),
  ];
  const [negative, positive] = ([0, 1] as const).map((label) =>
    examples.filter((example) => example.label === label).map(({ text }) => text),
  ) as [string[], string[]];
  const take = (file: File | undefined) =>
    trying(async () => {
      if (file === undefined) return;
      if (file.size > mostBytes) {
        throw new Error(`${file.name}: at most ${mostBytes} bytes, got ${file.size}.`);
      }
      const [content, { csvRows }] = await Promise.all([file.text(), import("../pictures.js")]);
      set({ file: { name: file.name, examples: readExamples(file.name, content, csvRows) } });
    });
  const chosen = () => parseLayers(layers) ?? usualLayers(4);
  const job = () => ({
    ...{ operation: "probe", model: labModel(), layers: chosen() },
    examples: withSplits(examples),
    ...(draft.rows !== "last" && { rows: draft.rows }),
  });
  const train = () => trying(async ({ go }) => go(`/probe/${await submit(job())}`));
  return (
    <div class="page">
      <h1>Probe</h1>
      <Fold hasResult={id !== undefined}>
        <p class="soft">
          A linear probe tests whether a property is linearly readable from an activation. Every third text is
          held out; a shuffled-label control is trained too. From the result you can save the probe of any
          layer for the chat.
        </p>
        <Form onSubmit={train} problem={problem}>
          {draft.file === undefined ? (
            <div class="twins">
              <TextsField label="Class 1" {...bind("positive")} />
              <TextsField label="Class 0" {...bind("negative")} />
            </div>
          ) : (
            <p class="row">
              <span>
                <bdi>{draft.file.name}</bdi>: {positive.length} texts of class 1, {negative.length} of class 0
                {examples.some(({ split }) => split !== undefined) && ", with splits"}.
              </span>
              <Button class="quiet" onClick={() => set({ file: undefined })}>
                Use the text lists instead
              </Button>
            </p>
          )}
          <div
            class="drop"
            role="group"
            aria-label="A file of examples"
            onDragOver={(event) => event.preventDefault()}
            onDrop={(event) => {
              event.preventDefault();
              void take(event.dataTransfer?.files[0]);
            }}
          >
            <label>
              Examples from a file{" "}
              <input
                type="file"
                accept=".csv,.jsonl,.ndjson"
                onChange={({ currentTarget }) => {
                  void take(currentTarget.files?.[0]);
                  currentTarget.value = "";
                }}
              />
            </label>{" "}
            <span class="soft">
              or drop it here: CSV or JSON Lines with <code>text</code>, <code>label</code> (0 or 1) and
              optionally <code>split</code> (train or test)
            </span>
          </div>
          <div class="row">
            <LayersField value={layers} onChange={setLayers} />
            <Choice label="Activation used" options={activations} {...bind("rows")} />
            <button type="submit" class="main" disabled={known.state?.lab.ok !== true}>
              Train and evaluate
            </button>
            <ScriptMenu of="train and evaluate" request={() => jobRequest(job())} />
          </div>
        </Form>
      </Fold>
      {(library?.probes ?? []).map(({ name, layer, separation, shuffled_separation: shuffled }) => (
        <section class="card" key={name} aria-label={`Probe ${name}`}>
          <h2>
            <bdi>{name}</bdi>
          </h2>
          <p>
            Layer {layer}
            {separation !== undefined && `, held-out AUROC ${separation.toFixed(3)}`}
            {shuffled !== undefined && `, shuffled labels ${shuffled.toFixed(3)}`}
          </p>
          <ChatLink
            href={`/chat?show=${encodeURIComponent(`probe ${name}`)}`}
            prepare={() => {
              chatSettings.watch = name;
            }}
          >
            Use in chat
          </ChatLink>
          <LibraryTools kind="probes" name={name} />
        </section>
      ))}
      {id !== undefined && (
        <JobResult
          id={id}
          operation="probe"
          below={(findings) => (
            <>
              <SaveProbe key={findings.job.id} findings={findings} name={draft.name} />
              <Worst reports={findings.job.result.reports} />
            </>
          )}
        />
      )}
    </div>
  );
}

/** The held-out texts with the largest errors, layer by layer. */
function Worst({ reports }: { reports: ProbeResult["reports"] }) {
  return (
    <section class="card" aria-label="Largest errors">
      <h2>Largest errors</h2>
      <p class="soft">Held-out texts whose score is farthest from their label.</p>
      {reports.map((report, at) => {
        const { layer } = report;
        const held = mostWrong(heldOut(report));
        const wrong = held.filter(({ error }) => error > 0.5).length;
        const rows = held
          .slice(0, worstShown)
          .map(({ text, label, score, error }) => [
            ...[text, String(label), score.toFixed(3)],
            `${error.toFixed(3)}${error > 0.5 ? " ✗" : ""}`,
          ]);
        return (
          <details key={layer} open={at === 0}>
            <summary>
              Layer {layer}: {wrong} of {held.length} on the wrong side of 0.5
            </summary>
            <DataTable head={worstHead} rows={rows} label={`Largest errors at layer ${layer}`} />
            <Button
              class="quiet"
              aria-label={`All as CSV: errors at layer ${layer}`}
              onClick={() =>
                void import("../pictures.js").then(({ saveTable }) =>
                  saveTable(
                    `tapline-probe-layer-${layer}-most-wrong`,
                    worstHead,
                    held.map(({ text, label, score, error }) => [text, label, score, error]),
                  ),
                )
              }
            >
              All as CSV
            </Button>
          </details>
        );
      })}
    </section>
  );
}

const worstHead = ["text", "label", "score", "error"];
