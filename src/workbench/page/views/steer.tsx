import { useEffect, useMemo, useState } from "preact/hooks";
import type { StoredVector } from "../../../contracts/library.js";
import { figureOf } from "../../../findings/numbers.js";
import { separation } from "../../../report/separation.js";
import { chatSettings } from "../chat-settings.js";
import { labModel, serverRequest, submit, useAsked, usualLayers } from "../jobs.js";
import { linesOf, parseLayers } from "../lists.js";
import { follow, select, usePlace } from "../router.js";
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
import { DoseGrid } from "./dose-grid.js";
import { newEdit, useLibrary } from "./edits.js";
import { Field, LayersField, TextsField } from "./fields.js";
import { FigureView } from "./figure.js";
import { Button, Form, useKept, useTrying } from "./form.js";
import { RequestCode } from "./request-code.js";
import { Table } from "./table.js";

/** The texts that a direction is made from; kept while one looks at other views. */
const draft: SteerForm = { ...steerForm };

/** A direction from two lists of texts, how well it separates, and what it does at several layers and strengths. */
export function SteerView({ id }: { id: string | undefined }) {
  useTopic("state");
  const library = useLibrary();
  const { query } = usePlace();
  const { problem, trying } = useTrying();
  const [making, setMaking] = useState(false);
  const set = useKept(draft);
  const ids = gridJobs(id, query);
  useAsked("compare", id, (asked) => set(steerFormOf(asked)));
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
        // Those that were taken are shown, whatever became of the rest.
        if (jobs.length > 0) go(gridPath(jobs));
      }
    });
  return (
    <div class="page">
      <h1>Steer</h1>
      <p class="soft">
        A direction is the difference of the states of two lists of texts at a block's output. Texts that
        differ in one thing alone make the better ones.
      </p>
      <Form onSubmit={make} problem={problem}>
        <div class="twins">
          <TextsField label="Towards" value={draft.positive} onChange={(positive) => set({ positive })} />
          <TextsField label="Away from" value={draft.negative} onChange={(negative) => set({ negative })} />
        </div>
        <p class="row">
          <Field label="name" value={draft.name} onChange={(name) => set({ name })} />
          <LayersField
            value={draft.layers}
            placeholder={usual.join(", ")}
            onChange={(layers) => set({ layers })}
          />
          <button type="submit" class="main" disabled={making || known.state?.server.ok !== true}>
            {making ? "Making …" : "Make"}
          </button>
        </p>
        <RequestCode of="make" request={() => serverRequest("/lab/vectors", direction())} />
        <TextsField
          label="Tried on"
          rows={2}
          value={draft.prompts}
          onChange={(prompts) => set({ prompts })}
        />
        <p class="row">
          <Field
            label="strengths, in lengths of the row"
            class="strengths"
            value={draft.strengths}
            onChange={(strengths) => set({ strengths })}
          />
          <Field
            label="follow the token"
            value={draft.target}
            placeholder="the model's answer"
            onChange={(target) => set({ target })}
          />
          <Button disabled={known.state?.lab.ok !== true} onClick={() => void measure()}>
            Measure at these layers, beside random vectors
          </Button>
        </p>
      </Form>
      {ids.length > 0 && <DoseGrid ids={ids} name={draft.name} />}
      {(library?.vectors ?? []).map((vector) => (
        <VectorCard key={vector.name} vector={vector} open={query.get("v") === vector.name} />
      ))}
      {library !== undefined && library.vectors.length === 0 && (
        <p class="soft">No directions are kept yet.</p>
      )}
    </div>
  );
}

const titles = [
  ...["layer", { number: "AUROC of held-out texts" }, { number: "labels shuffled" }],
  ...[{ number: "length" }, { number: "typical row" }],
];

function VectorCard({ vector, open }: { vector: StoredVector; open: boolean }) {
  const best = vector.layers.reduce((one, other) =>
    (other.separation ?? 0) > (one.separation ?? 0) ? other : one,
  );
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
      <p class="row">
        <a
          class="button"
          href="/chat"
          onClick={(event) => {
            chatSettings.edits = [...chatSettings.edits, newEdit("steer", best.layer, vector.name)];
            follow(event);
          }}
        >
          Try in chat, layer {best.layer}
        </a>
        <Button
          class="quiet"
          aria-expanded={open}
          onClick={() => select({ v: open ? undefined : vector.name })}
        >
          How it separates
        </Button>
      </p>
      {open && <Separation key={vector.sha256} name={vector.name} />}
    </section>
  );
}

/** Where both lists' texts stand along a direction, as the server told it when the direction was made. */
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
  if (vector === undefined) return <p class="soft">This direction is being read.</p>;
  if (figure === undefined) {
    return (
      <p class="soft">
        Nothing is known of its texts: it came as a file, was made by an earlier version, or from fewer than
        three texts a list.
      </p>
    );
  }
  return <FigureView figure={figure} name={`tapline-vector-${name}`} />;
}
