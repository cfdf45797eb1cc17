import { useState } from "preact/hooks";
import type { ProbeResult } from "../../../contracts/index.js";
import { heldOut, mostWrong } from "../../../findings/probe.js";
import { chatSettings } from "../chat-settings.js";
import { type LabelledText, readExamples, withSplits } from "../examples.js";
import { jobRequest, labModel, serverRequest, submit, usualLayers } from "../jobs.js";
import { linesOf, parseLayers } from "../lists.js";
import { follow } from "../router.js";
import { post } from "../session.js";
import { known, useTopic } from "../store.js";
import { useLibrary } from "./edits.js";
import { Choice, Field, LayersField, TextsField } from "./fields.js";
import { Button, Form, useKept, useTrying } from "./form.js";
import { JobResult } from "./job-result.js";
import { RequestCode } from "./request-code.js";
import { DataTable } from "./table.js";

/** Of a file of examples, in bytes. */
const mostBytes = 2_000_000;
/** Texts that are listed of each layer. */
const worstShown = 10;

const praise = ["good", "great", "wonderful", "lovely", "superb", "excellent"];
const blame = ["bad", "poor", "awful", "boring", "weak", "terrible"];
const review = (words: string[]) =>
  words.map((word) => `The review says that the film was ${word}.`).join("\n");

const rowsInWords = [
  ["last", "the last token's row"],
  ["mean", "the mean of its rows"],
  ["all", "every token's row"],
] as const;

/** The texts that a probe learns from; kept while one looks at other views. */
const draft: {
  name: string;
  positive: string;
  negative: string;
  /** Which of a text's rows it is trained on. */
  rows: (typeof rowsInWords)[number][0];
  /** Examples of a file, in place of the two lists. */
  file: { name: string; examples: LabelledText[] } | undefined;
} = { name: "praise", positive: review(praise), negative: review(blame), rows: "last", file: undefined };

/** A linear probe from two lists of texts: measured in a job with its controls, and kept for the chat. */
export function ProbeView({ id }: { id: string | undefined }) {
  useTopic("state");
  const library = useLibrary();
  const [layers, setLayers] = useState(usualLayers(4).join(", "));
  const { problem, trying } = useTrying();
  const set = useKept(draft);
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
        throw new Error(`${file.name} has ${file.size} bytes; at most ${mostBytes} are read.`);
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
  const kept = () => ({ name: draft.name, positive, negative, layer: chosen().at(-1) });
  const train = () => trying(async ({ go }) => go(`/probe/${await submit(job())}`));
  return (
    <div class="page">
      <h1>Probe</h1>
      <p class="soft">
        A linear probe reads one thing off a block's output. Every third text is held out, and the same is
        done with shuffled labels.
      </p>
      <Form onSubmit={train} problem={problem}>
        {draft.file === undefined ? (
          <div class="twins">
            <TextsField label="Class 1" value={draft.positive} onChange={(positive) => set({ positive })} />
            <TextsField label="Class 0" value={draft.negative} onChange={(negative) => set({ negative })} />
          </div>
        ) : (
          <p class="row">
            <span>
              <bdi>{draft.file.name}</bdi>: {positive.length} texts of class 1, {negative.length} of class 0
              {examples.some(({ split }) => split !== undefined) && ", with splits of its own"}.
            </span>
            <Button class="quiet" onClick={() => set({ file: undefined })}>
              Take the lists again
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
            or drop it here: CSV or JSON Lines with <code>text</code>, <code>label</code> (0 or 1) and, if you
            like, <code>split</code> (train or test)
          </span>
        </div>
        <p class="row">
          <LayersField value={layers} onChange={setLayers} />
          <Choice
            label="measured of each text"
            value={draft.rows}
            options={rowsInWords}
            onChange={(rows) => set({ rows })}
          />
          <button type="submit" class="main" disabled={known.state?.lab.ok !== true}>
            Train and measure
          </button>
          <Field label="name" value={draft.name} onChange={(name) => set({ name })} />
          <Button
            disabled={known.state?.server.ok !== true}
            onClick={() => void trying(() => post("/api/probes", kept()))}
          >
            Keep one for the chat, at the last of these layers
          </Button>
        </p>
        <RequestCode of="train and measure" request={() => jobRequest(job())} />
        <RequestCode of="keep one" request={() => serverRequest("/lab/probes", kept())} />
      </Form>
      {(library?.probes ?? []).map(({ name, layer, separation, shuffled_separation: shuffled }) => (
        <section class="card" key={name} aria-label={`Probe ${name}`}>
          <h2>
            <bdi>{name}</bdi>
          </h2>
          <p>
            Layer {layer}
            {separation !== undefined && `, AUROC of held-out texts ${separation.toFixed(3)}`}
            {shuffled !== undefined && `, with shuffled labels ${shuffled.toFixed(3)}`}
          </p>
          <a
            class="button"
            href={`/chat?show=${encodeURIComponent(`probe ${name}`)}`}
            onClick={(event) => {
              chatSettings.watch = name;
              follow(event);
            }}
          >
            Watch in chat
          </a>
        </section>
      ))}
      {id !== undefined && (
        <JobResult id={id} operation="probe" below={({ job }) => <Worst reports={job.result.reports} />} />
      )}
    </div>
  );
}

/** The held-out texts that a probe gets most wrong, layer by layer. */
function Worst({ reports }: { reports: ProbeResult["reports"] }) {
  return (
    <section class="card" aria-label="Most wrong">
      <h2>Most wrong</h2>
      <p class="soft">The held-out texts whose score is farthest from their label.</p>
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
            <DataTable head={worstHead} rows={rows} label={`Most wrong at layer ${layer}`} />
            <Button
              class="quiet"
              aria-label={`All as CSV: most wrong at layer ${layer}`}
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
