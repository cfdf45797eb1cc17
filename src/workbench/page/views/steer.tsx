import { useEffect, useMemo, useState } from "preact/hooks";
import type { StoredVector } from "../../../contracts/library.js";
import { figureOf } from "../../../findings/numbers.js";
import { separation } from "../../../report/separation.js";
import { addEdit } from "../chat-settings.js";
import { labModel, serverRequest, submit, useConfig, usualLayers } from "../jobs.js";
import { linesOf, parseLayers } from "../lists.js";
import { select, usePlace } from "../router.js";
import { call, post } from "../session.js";
import {
  doseRequest,
  gridJobs,
  gridLayers,
  gridPath,
  type SteerForm,
  steerForm,
  steerFormOf,
} from "../steer-request.js";
import { known, useTopic } from "../store.js";
import { ChatLink } from "./chat-settings.js";
import { DoseGrid } from "./dose-grid.js";
import { newEdit, useLibrary } from "./edits.js";
import { Field, LayersField, TextsField } from "./fields.js";
import { FigureView } from "./figure.js";
import { Fold } from "./fold.js";
import { Button, Form, useDraft, useTrying } from "./form.js";
import { LibraryTools } from "./library-tools.js";
import { ScriptMenu } from "./request-code.js";
import { Table } from "./table.js";

/** The form, kept while other views are open. */
const draft: SteerForm = { ...steerForm };

/** Directions from two lists of texts: how well they separate, and their effect at several layers and strengths. */
export function SteerView({ id }: { id: string | undefined }) {
  useTopic("state");
  const library = useLibrary();
  const { query } = usePlace();
  const { problem, trying } = useTrying();
  const [making, setMaking] = useState(false);
  const { set, bind } = useDraft(draft);
  const ids = gridJobs(id, query);
  useConfig("compare", id, (config) => set(steerFormOf(config)));
  const usual = usualLayers(8);
  const direction = () => ({
    name: draft.name,
    positive: linesOf(draft.positive),
    negative: linesOf(draft.negative),
    layers: parseLayers(draft.layers) ?? usual,
  });
  const make = async () => {
    setMaking(true);
    await trying(async ({ select }) => {
      await post("/api/vectors", direction());
      select({ v: draft.name });
    });
    setMaking(false);
  };
  const measure = () =>
    trying(async ({ go }) => {
      const body = { model: labModel(), ...doseRequest(draft) };
      const jobs: string[] = [];
      try {
        for (const layer of gridLayers(draft, usual)) jobs.push(await submit({ ...body, layers: [layer] }));
      } finally {
        // Show the accepted jobs even if a later one failed.
        if (jobs.length > 0) go(gridPath(jobs));
      }
    });
  return (
    <div class="page">
      <h1>Steer</h1>
      <Fold hasResult={ids.length > 0}>
        <p class="soft">
          A direction is the mean activation of one list of texts minus that of the other. Lists that differ
          in only one respect work best.
        </p>
        <Form onSubmit={make} problem={problem}>
          <div class="twins">
            <TextsField label="Towards" {...bind("positive")} />
            <TextsField label="Away from" {...bind("negative")} />
          </div>
          <div class="row">
            <Field label="Name" {...bind("name")} />
            <LayersField placeholder={usual.join(", ")} {...bind("layers")} />
            <button type="submit" class="main" disabled={making || known.state?.server.ok !== true}>
              {making ? "Creating…" : "Create direction"}
            </button>
            <ScriptMenu of="create direction" request={() => serverRequest("/lab/vectors", direction())} />
          </div>
          <TextsField label="Test prompts" rows={2} {...bind("prompts")} />
          <p class="row">
            <Field label="Strengths (× activation norm)" class="strengths" {...bind("strengths")} />
            <Field label="Track token" placeholder="the model's answer" {...bind("target")} />
            <Button disabled={known.state?.lab.ok !== true} onClick={() => void measure()}>
              Measure effect (with random control)
            </Button>
          </p>
        </Form>
      </Fold>
      {ids.length > 0 && <DoseGrid ids={ids} name={draft.name} />}
      {(library?.vectors ?? []).map((vector) => (
        <VectorCard key={vector.name} vector={vector} open={query.get("v") === vector.name} />
      ))}
      {library !== undefined && library.vectors.length === 0 && <p class="soft">No saved directions yet.</p>}
    </div>
  );
}

const titles = [
  ...["Layer", { number: "Held-out AUROC" }, { number: "Shuffled labels" }],
  ...[{ number: "Direction norm" }, { number: "Typical activation norm" }],
];

function VectorCard({ vector, open }: { vector: StoredVector; open: boolean }) {
  const middle = vector.layers[Math.floor(vector.layers.length / 2)]?.layer ?? 0;
  return (
    <section class="card" aria-label={`Direction ${vector.name}`}>
      <h2>
        <bdi>{vector.name}</bdi>
      </h2>
      <Table label={`Layers of ${vector.name}`} titles={titles}>
        {vector.layers.map((layer) => (
          <tr key={layer.layer}>
            <th scope="row">{layer.layer}</th>
            <td class="number">{layer.separation == null ? "too few texts" : layer.separation.toFixed(3)}</td>
            <td class="number">
              {layer.shuffled_separation == null ? "" : layer.shuffled_separation.toFixed(3)}
            </td>
            <td class="number">{figureOf(layer.length)}</td>
            <td class="number">{layer.typical_row === undefined ? "" : figureOf(layer.typical_row)}</td>
          </tr>
        ))}
      </Table>
      <p class="soft">
        A layer that separates the lists need not steer. Measure the effect to choose one
        {vector.layers.length > 1 && "; until then, the middle one is offered"}.
      </p>
      <p class="row">
        <ChatLink prepare={() => addEdit(newEdit("steer", middle, vector.name))}>
          Try in chat at layer {middle}
        </ChatLink>
        <Button
          class="quiet"
          aria-expanded={open}
          onClick={() => select({ v: open ? undefined : vector.name })}
        >
          Show separation
        </Button>
        <LibraryTools kind="vectors" name={vector.name} onChange={(name) => open && select({ v: name })} />
      </p>
      {open && <Separation key={vector.sha256} name={vector.name} />}
    </section>
  );
}

/** The projections of both lists on the direction, recorded when it was created. */
function Separation({ name }: { name: string }) {
  const [vector, setVector] = useState<StoredVector>();
  const { problem, trying } = useTrying();
  useEffect(() => {
    void trying(async () => setVector(await call(`/api/vectors/${encodeURIComponent(name)}`)));
  }, [name]);
  const figure = useMemo(
    () => (vector === undefined ? undefined : separation(name, vector.layers)),
    [vector, name],
  );
  if (problem !== undefined) return <p class="problem">{problem}</p>;
  if (vector === undefined) return <p class="soft">Loading direction…</p>;
  if (figure === undefined) {
    return (
      <p class="soft">
        No separation data: this direction was imported, made by an older version, or built from fewer than
        three texts per list.
      </p>
    );
  }
  return <FigureView figure={figure} name={`tapline-vector-${name}`} />;
}
