import { useEffect, useState } from "preact/hooks";
import {
  interventionKinds,
  interventionOf,
  type SliderKind,
  sliderKinds,
} from "../../../contracts/interventions.js";
import type { StoredDictionary, StoredLens, StoredProbe, StoredVector } from "../../../contracts/library.js";
import type { LiveIntervention } from "../../../contracts/live.js";
import type { ChangedPoint } from "../../../contracts/names.js";
import type { StoredProfile } from "../../../contracts/profile.js";
import { firstChange } from "../first-change.js";
import { call } from "../session.js";
import { known, listen, useTopic } from "../store.js";
import { Check, Choice, NumberField } from "./fields.js";
import { Button, Form } from "./form.js";
import { Profiles } from "./profiles.js";

export interface Library {
  vectors: StoredVector[];
  probes: StoredProbe[];
  profiles: StoredProfile[];
  dictionaries: StoredDictionary[];
  lenses: StoredLens[];
}

/** The saved vectors, probes, dictionaries and lenses; undefined while loading. */
export function useLibrary(): Library | undefined {
  useTopic("state");
  const [library, set] = useState<Library>();
  const { server, lab } = known.state ?? {};
  // Load again once a service is back.
  useEffect(() => {
    let latest = 0;
    const read = () => {
      latest += 1;
      const turn = latest;
      // Ignore an older response that arrives late.
      call<Library>("/api/library").then(
        (found) => turn === latest && set(found),
        () => {},
      );
    };
    read();
    const stop = listen("library", read);
    return () => {
      latest += 1;
      stop();
    };
  }, [server?.ok, lab?.ok]);
  return library;
}

/** A feature of a dictionary, and where the dictionary is. */
export interface FeatureOf {
  dictionary: string;
  index: number;
  layer: number;
  /** The point at which the feature is a direction; block_out if absent. */
  point?: ChangedPoint;
}

/** Clamping has no slider: its card has the activation. */
type EditKind = SliderKind | "clamp";

const positions = [
  ["all", "all tokens"],
  ["prompt", "prompt tokens"],
  ["generated", "generated tokens"],
  ["last", "the last prompt token and every generated token"],
] as const;

/** A slider: an intervention on the next answers. */
export interface Edit {
  key: number;
  on: boolean;
  kind: EditKind;
  layer: number;
  vector: string;
  /** Instead of a vector. */
  feature?: FeatureOf;
  /** Instead of the block's output. */
  heads?: number[];
  strength: number;
  /** For clamping a feature: the activation that it gets. */
  level?: number;
  positions: (typeof positions)[number][0];
}

/** Largest activation that the page offers for a clamp. */
export const mostLevel = 1e6;

let keys = 0;

export function newEdit(kind: SliderKind, layer: number, vector = "", feature?: FeatureOf): Edit {
  keys += 1;
  const { first: strength } = interventionKinds[kind].slider;
  const what = { kind, layer, vector, ...(feature !== undefined && { feature }) };
  return { key: keys, on: true, ...what, strength, positions: "all" };
}

/** Gives a feature this activation in the next answers. */
export function clampEdit(feature: FeatureOf, level: number): Edit {
  return { ...newEdit("steer", feature.layer, "", feature), kind: "clamp", strength: 1, level };
}

/** Removes a head's output from the next answers. */
export function headEdit(layer: number, head: number): Edit {
  return { ...newEdit("ablate", layer), heads: [head], strength: 1 };
}

/** An intervention and its place, such as `ablate at layer 3, head 2`. */
export function editName({ kind, layer, heads }: { kind: string; layer: number; heads?: readonly number[] }) {
  const of = heads === undefined ? "" : `, ${heads.length === 1 ? "head" : "heads"} ${heads.join(", ")}`;
  return `${kind.replaceAll("_", " ")} at layer ${layer}${of}`;
}

/** The active sliders as the server expects them. */
export function interventionsOf(edits: readonly Edit[]): LiveIntervention[] {
  return edits
    .filter(({ on }) => on)
    .map(({ kind, layer, vector, feature, heads, strength, level, positions }) => ({
      kind,
      layer,
      ...(feature?.point !== undefined && feature.point !== "block_out" && { point: feature.point }),
      ...(heads !== undefined && { point: "head_out" as const, heads }),
      strength,
      ...(positions !== "all" && { positions }),
      ...(interventionOf(kind).needs && {
        vector: feature === undefined ? vector : { feature: [feature.dictionary, feature.index] },
      }),
      ...(kind === "clamp" && { min: level ?? 0, max: level ?? 0 }),
      ...(kind !== "clamp" && interventionOf(kind).units && { strength_unit: "row_norm" as const }),
    }));
}

/** The intervention that “Change a layer” adds. */
export function firstEdit(width: number | null): Edit {
  const { kind, layer, ...change } = firstChange(width);
  return { ...newEdit(kind, layer), ...change };
}

interface EditsProps {
  edits: Edit[];
  pair: boolean;
  layers: number;
  /** Hidden size of the served model. */
  width: number | null;
  library: Library | undefined;
  onEdits: (edits: Edit[]) => void;
  onPair: (pair: boolean) => void;
  /** Reruns the last question; absent if there is none or an answer is being generated. */
  onAgain: (() => void) | undefined;
  /** The chosen profile; empty for none. */
  profile: string;
  onProfile: (profile: string) => void;
}

export function Edits(props: EditsProps) {
  const { edits, pair, layers, width, library, onEdits, onPair, onAgain, profile, onProfile } = props;
  const vectors = library?.vectors ?? [];
  const replace = (key: number, change: Partial<Edit>) =>
    onEdits(edits.map((edit) => (edit.key === key ? { ...edit, ...change } : edit)));
  return (
    <section class="card edits" aria-label="Interventions">
      <h2>Interventions</h2>
      {edits.length === 0 && profile === "" && <p class="soft">None. The next answer is unmodified.</p>}
      <ul class="plain">
        {edits.map((edit) => (
          <EditCard
            key={edit.key}
            edit={edit}
            layers={layers}
            vectors={vectors}
            onChange={(change) => replace(edit.key, change)}
            onRemove={() => onEdits(edits.filter(({ key }) => key !== edit.key))}
          />
        ))}
      </ul>
      <p class="row">
        <Button onClick={() => onEdits([...edits, firstEdit(width)])}>Change a layer</Button>
        <Button
          disabled={vectors.length === 0}
          onClick={() => {
            const [vector] = vectors as [StoredVector, ...StoredVector[]];
            onEdits([...edits, newEdit("steer", vector.layers[0]?.layer ?? 0, vector.name)]);
          }}
        >
          Steer
        </Button>
      </p>
      <FeatureField
        dictionaries={library?.dictionaries ?? []}
        onAdd={(feature) => onEdits([...edits, newEdit("steer", feature.layer, "", feature)])}
      />
      {vectors.length === 0 && (
        <p class="soft">
          To steer, first <a href="/steer">create a direction from two lists of texts</a>.
        </p>
      )}
      <Profiles
        profiles={library?.profiles ?? []}
        chosen={profile}
        interventions={interventionsOf(edits)}
        onChoose={onProfile}
      />
      <Check checked={pair} onChange={onPair}>
        Compare with the unmodified answer
      </Check>
      {onAgain !== undefined && (profile !== "" || edits.some(({ on }) => on)) && (
        <p>
          <Button class="main" onClick={onAgain}>
            Rerun last question
          </Button>
        </p>
      )}
    </section>
  );
}

/** A feature of a saved dictionary, at the point that its decoder writes. */
function featureOf({ name, layer, point, writes }: StoredDictionary, index: number): FeatureOf {
  return { dictionary: name, index, layer, point: (writes ?? point ?? "block_out") as ChangedPoint };
}

/** Adds steering along a feature by its index. */
function FeatureField({
  dictionaries,
  onAdd,
}: {
  dictionaries: StoredDictionary[];
  onAdd: (feature: FeatureOf) => void;
}) {
  const [name, setName] = useState("");
  const [index, setIndex] = useState(0);
  const chosen = dictionaries.find((one) => one.name === name) ?? dictionaries[0];
  if (chosen === undefined) return null;
  return (
    <Form class="row" onSubmit={() => onAdd(featureOf(chosen, index))}>
      <NumberField label="Feature" min={0} max={chosen.features - 1} value={index} onChange={setIndex} />
      <Choice
        label="of"
        value={chosen.name}
        options={dictionaries.map((one) => one.name)}
        onChange={setName}
      />
      <button type="submit">Steer with this feature</button>
    </Form>
  );
}

interface EditCardProps {
  edit: Edit;
  layers: number;
  vectors: StoredVector[];
  onChange: (change: Partial<Edit>) => void;
  onRemove: () => void;
}

function EditCard({ edit, layers, vectors, onChange, onRemove }: EditCardProps) {
  const isClamp = edit.kind === "clamp";
  const range = interventionKinds[edit.kind === "clamp" ? "steer" : edit.kind].slider;
  const names = `edit-${edit.key}`;
  const isWhole = edit.heads === undefined;
  const vector = vectors.find(({ name }) => name === edit.vector);
  const usesVector = interventionOf(edit.kind).needs !== undefined;
  const known = knownLayers(edit, vector);
  const without = vectors.length === 0 && edit.feature === undefined;
  const isPossible = (kind: SliderKind) =>
    isWhole ? !without || interventionOf(kind).needs === undefined : interventionOf(kind).heads === true;
  return (
    <li class={edit.on ? "edit" : "edit off"}>
      <div class="row">
        <Check checked={edit.on} onChange={(on) => onChange({ on })}>
          on
        </Check>
        {isClamp ? (
          <span>clamp</span>
        ) : (
          <label>
            <span class="visually-hidden">Kind</span>
            <select
              value={edit.kind}
              onChange={(event) => {
                const kind = event.currentTarget.value as SliderKind;
                onChange({
                  ...newEdit(kind, edit.layer, edit.vector || (vectors[0]?.name ?? ""), edit.feature),
                  ...(edit.heads !== undefined && { heads: edit.heads }),
                  key: edit.key,
                });
              }}
            >
              {sliderKinds.map((kind) => (
                <option key={kind} value={kind} disabled={!isPossible(kind)}>
                  {kind.replaceAll("_", " ")}
                </option>
              ))}
            </select>
          </label>
        )}
        {edit.heads !== undefined && <span>head {edit.heads.join(", ")}</span>}
        {usesVector && edit.feature !== undefined && (
          <span>
            feature {edit.feature.index} of <bdi>{edit.feature.dictionary}</bdi>
          </span>
        )}
        {usesVector && edit.feature === undefined && (
          <Choice
            label={<span class="visually-hidden">Direction</span>}
            value={edit.vector}
            options={vectors.map(({ name }) => name)}
            onChange={(vector) => onChange({ vector })}
          />
        )}
        <Choice
          label="Layer"
          value={edit.layer}
          options={known ?? Array.from({ length: layers }, (_, layer) => layer)}
          onChange={(layer) => onChange({ layer })}
        />
        <Button class="quiet" aria-label={`Remove ${editName(edit)}`} onClick={onRemove}>
          Remove
        </Button>
      </div>
      {isClamp ? (
        <NumberField
          label="Activation"
          min={0}
          max={mostLevel}
          step={0.1}
          value={edit.level ?? 0}
          onChange={(level) => onChange({ level })}
        />
      ) : (
        <div class="row">
          <input
            type="range"
            id={names}
            aria-label={`Strength of ${editName(edit)}`}
            aria-valuetext={`${edit.strength} ${range.of}`}
            min={range.min}
            max={range.max}
            step={0.05}
            value={edit.strength}
            onInput={(event) => onChange({ strength: Number(event.currentTarget.value) })}
          />
          <input
            type="number"
            aria-label={`Strength of ${editName(edit)} as a number`}
            step={0.05}
            value={edit.strength}
            onInput={(event) => {
              const strength = event.currentTarget.valueAsNumber;
              if (Number.isFinite(strength)) onChange({ strength });
            }}
          />
          <span class="soft">{range.of}</span>
        </div>
      )}
      {edit.strength === interventionOf(edit.kind).neutral && <p class="soft">No effect at this strength.</p>}
      {edit.kind === "ablate" && isWhole && edit.strength > 0.5 && edit.positions !== "prompt" && (
        <p class="soft">
          Removing most of a block's output breaks the language. To change the content instead, edit only the
          prompt or steer along a direction.
        </p>
      )}
      <Choice
        label="Positions"
        value={edit.positions}
        options={positions}
        onChange={(positions) => onChange({ positions })}
      />
    </li>
  );
}

/** The layers at which a slider can act; undefined for all. */
function knownLayers({ kind, layer, feature, heads }: Edit, vector: StoredVector | undefined) {
  if (heads !== undefined) return [layer];
  if (interventionOf(kind).needs === undefined) return undefined;
  return feature === undefined ? vector?.layers.map((one) => one.layer) : [feature.layer];
}
