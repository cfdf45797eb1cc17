import { markerCount, wordsOf } from "../../../findings/contrast.js";
import { count } from "../../../findings/numbers.js";
import type { ContrastStatus, Turn, TurnAnswer } from "../../wire.js";
import { known, useTopic } from "../store.js";

/** The same answer along random directions, and what the contrast sets' words show. */
export function Control({ turn }: { turn: Turn }) {
  useTopic("contrasts");
  const { control, answers } = turn;
  if (control === undefined) return null;
  const edited = answers.find((answer) => answer.edited);
  const baseline = answers.find((answer) => !answer.edited);
  const sets = (known.contrasts ?? []).filter(({ ready }) =>
    turn.interventions.some(({ vector }) => vector === ready?.vector),
  );
  const texts = { edited: textOf(edited), baseline: textOf(baseline), control: control.text };
  return (
    <section class="control" aria-label="Control">
      {control.state === "done" &&
        sets.map((set) => (
          <p class="finding" key={set.name}>
            {findingSentence(set, texts)}
          </p>
        ))}
      <p class="soft">
        {control.state === "running"
          ? "Control, a random direction of the same norm: generating…"
          : control.state === "failed"
            ? `Control: ${control.error}`
            : "Control, a random direction of the same norm:"}
      </p>
      {control.state === "done" && (
        <p class="control-text">
          <bdi>{control.text}</bdi>
        </p>
      )}
    </section>
  );
}

interface Texts {
  edited: string;
  baseline: string;
  control: string;
}

/** What the direction did to this answer, compared with the baseline and the control. */
export function findingSentence({ title, expected }: ContrastStatus, texts: Texts): string {
  const of = (text: string) =>
    "shorter" in expected ? wordsOf(text).length : markerCount(text, expected.markers);
  const [edited, baseline, control] = [texts.edited, texts.baseline, texts.control].map(of) as [
    number,
    number,
    number,
  ];
  const what = "shorter" in expected ? count(edited, "word") : `${count(edited, "marker")} of “${title}”`;
  return `${what} with the direction, ${baseline} in the baseline, ${control} in the control.`;
}

function textOf(answer: TurnAnswer | undefined): string {
  return (answer?.tokens ?? [])
    .filter(({ thinking, special }) => thinking !== true && special !== true)
    .map(({ text }) => text)
    .join("");
}
