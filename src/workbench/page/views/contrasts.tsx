import { useEffect, useRef } from "preact/hooks";
import type { ContrastReady, ContrastStatus } from "../../wire.js";
import { chatSettings as settings } from "../chat-settings.js";
import {
  controlSentence,
  editOfContrast,
  makeContrast,
  mostStrength,
  rangeSentence,
  useContrasts,
  wanted,
} from "../contrasts.js";
import { known } from "../store.js";
import type { Edit } from "./edits.js";
import { Button, Problem, useTrying } from "./form.js";
import { Table } from "./table.js";

/** A slider's last movement is this long ago when the question is asked again, in milliseconds. */
const settleMs = 350;

/** The longest answer to a slider's movement, which has to be quick. */
export const sliderTokens = 64;

interface ContrastsProps {
  onEdits: (edits: Edit[]) => void;
  /** Asks the last question again in its place, or a first question. */
  onRun: (example: string) => void;
}

/** Directions of the contrast sets as sliders over the chat. */
export function Contrasts({ onEdits, onRun }: ContrastsProps) {
  const contrasts = useContrasts();
  const { problem, trying } = useTrying();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  // The last render's function: settings may have changed meanwhile.
  const run = useRef(onRun);
  run.current = onRun;
  useEffect(() => () => clearTimeout(timer.current), []);
  const runSoon = (example: string) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => run.current(example), settleMs);
  };
  const editOf = ({ ready }: ContrastStatus) => settings.edits.find((edit) => edit.vector === ready?.vector);
  useEffect(() => {
    for (const contrast of contrasts ?? []) {
      if (!wanted.has(contrast.name)) continue;
      if (contrast.state === "making") continue;
      wanted.delete(contrast.name);
      if (contrast.ready === undefined || editOf(contrast) !== undefined) continue;
      onEdits([...settings.edits, editOfContrast(contrast.ready)]);
      runSoon(contrast.example);
    }
  }, [contrasts]);
  if (contrasts === undefined) return null;
  const press = (contrast: ContrastStatus) => {
    const { name, ready, example } = contrast;
    const edit = editOf(contrast);
    if (edit !== undefined) {
      onEdits(settings.edits.filter((one) => one !== edit));
      runSoon(example);
    } else if (ready !== undefined) {
      onEdits([...settings.edits, editOfContrast(ready)]);
      runSoon(example);
    } else void trying(() => makeContrast(name));
  };
  const active = contrasts.filter((contrast) => editOf(contrast) !== undefined);
  return (
    <section class="card contrasts" aria-label="Change the answer">
      <p class="row">
        <span>Make the answer:</span>
        {contrasts.map((contrast) => (
          <Button
            key={contrast.name}
            class="quiet"
            title={contrast.about}
            aria-pressed={editOf(contrast) !== undefined}
            disabled={contrast.state === "making" || known.state?.server.ok !== true}
            onClick={() => press(contrast)}
          >
            {contrast.title}
          </Button>
        ))}
      </p>
      {contrasts
        .filter(({ state }) => state === "making")
        .map(({ name, title, done = 0, total = 1 }) => (
          <p class="row" key={name}>
            <span>{title}: measuring its direction on this model</span>
            <progress value={done} max={total} aria-label={`Measuring ${title}`} />
          </p>
        ))}
      {contrasts.map(
        ({ name, title, error }) =>
          error !== undefined && <Problem key={name} sentence={`${title}: ${error}`} />,
      )}
      <Problem sentence={problem} />
      {active.map((contrast) => (
        <ContrastSlider
          key={contrast.name}
          title={contrast.title}
          ready={contrast.ready as ContrastReady}
          edit={editOf(contrast) as Edit}
          onStrength={(strength) => {
            const edit = editOf(contrast);
            onEdits(settings.edits.map((one) => (one === edit ? { ...one, strength } : one)));
            runSoon(contrast.example);
          }}
        />
      ))}
      {active.length > 0 && settings.tokens > sliderTokens && (
        <p class="soft">
          Moving a slider reruns the question with at most {sliderTokens} tokens; “Rerun last question” uses
          all {settings.tokens}.
        </p>
      )}
    </section>
  );
}

interface ContrastSliderProps {
  title: string;
  ready: ContrastReady;
  edit: Edit;
  onStrength: (strength: number) => void;
}

function ContrastSlider({ title, ready, edit, onStrength }: ContrastSliderProps) {
  const { separation, shuffled, measured } = ready;
  return (
    <div class="contrast">
      <p class="row">
        <label class="row">
          {title}
          <input
            type="range"
            min={0}
            max={mostStrength(ready)}
            step={0.01}
            value={edit.strength}
            aria-valuetext={`${edit.strength} × activation norm`}
            onInput={(event) => onStrength(Number(event.currentTarget.value))}
          />
        </label>
        <span class="number">{edit.strength}</span>
        <span class="soft">× activation norm</span>
      </p>
      <p class="soft">{rangeSentence(ready)}</p>
      <details>
        <summary>Measurements and controls</summary>
        <p class="soft">
          {separation !== null && `Held-out AUROC of the direction: ${separation.toFixed(2)}. `}
          {shuffled !== null && `With shuffled labels: ${shuffled.toFixed(2)}. `}
          {controlSentence(ready)}
        </p>
        <Table label={`Measured strengths of ${title}`} titles={titles}>
          {measured.map(({ strength, expected, fluent, of }) => (
            <tr key={strength}>
              <th scope="row">{strength}</th>
              <td class="number">{`${expected} of ${of}`}</td>
              <td class="number">{`${fluent} of ${of}`}</td>
            </tr>
          ))}
        </Table>
      </details>
    </div>
  );
}

const titles = ["Strength", { number: "As intended" }, { number: "Fluent" }];
