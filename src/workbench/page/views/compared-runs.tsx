import { useMemo, useState } from "preact/hooks";
import { difference } from "../../../findings/difference.js";
import type { Figure } from "../../../findings/figure.js";
import {
  pairedTokens,
  type Quantity,
  quantities,
  type Side,
  sharedQuantities,
  sideBySideCautions,
  sideBySideSummary,
} from "../../../findings/side-by-side.js";
import { sideFigures } from "../../../findings/side-figures.js";
import type { Reading } from "../../wire.js";
import { kindOf, type Run, settingsOf, sidesOf } from "../compared-runs.js";
import { isActive, jobRequest, serverRequest, useFindings, useJobSummary } from "../jobs.js";
import { numberIn } from "../lists.js";
import { follow, select, usePlace } from "../router.js";
import type { CodeRequest } from "../scripts.js";
import { call } from "../session.js";
import { useWork } from "../store.js";
import { CopyLink } from "./copy-link.js";
import { Choice } from "./fields.js";
import { FigureView } from "./figure.js";
import { Problem } from "./form.js";
import { ClearSelection, JobProgress } from "./job-result.js";
import { Menu } from "./menu.js";
import { RequestCode } from "./request-code.js";

const quantityNames: Record<Quantity, string> = {
  lens: "logit lens",
  norm: "norms",
  tracked: "tracked token",
};

/** Two runs: what they differ in, where, and both in full. */
export function Comparison({ one, other }: { one: string; other: string }) {
  const [first, second] = [useRun(one), useRun(other)];
  const waiting = [first, second].filter((run) => run === undefined || typeof run === "string");
  if (waiting.length > 0 || typeof first !== "object" || typeof second !== "object") {
    return (
      <section class="card" aria-label="Progress">
        {[one, other].map((id, at) => (
          <RunProgress
            key={`${id} ${at}`}
            id={id}
            run={[first, second][at]}
            name={["First run", "Second run"][at] as string}
          />
        ))}
      </section>
    );
  }
  return <Compared runs={[first, second]} ids={[one, other]} />;
}

/** A run once it is complete; an error message if it failed. */
function useRun(id: string): Run | string | undefined {
  const kind = kindOf(id);
  const findings = useFindings(kind === "job" ? id : undefined);
  const [reading, set] = useState<Reading | string>();
  useWork([id], (isOver) => {
    if (kind !== "reading") return;
    call<Reading>(`/api/readings/${id}`).then(
      (found) => !isOver() && set(found),
      (error: Error) => !isOver() && set(error.message),
    );
  });
  if (kind === undefined) return "There is no run at this address.";
  if (kind === "reading") {
    if (reading === undefined || typeof reading === "string") return reading;
    return reading.error ?? { reading };
  }
  if (findings === undefined || typeof findings === "string") return findings;
  if (findings.job.operation !== "inspect") return "Only inspections can be compared here.";
  return { job: findings.job } as Run;
}

function RunProgress({ id, run, name }: { id: string; run: Run | string | undefined; name: string }) {
  const summary = useJobSummary(id);
  if (typeof run === "string") return <Problem sentence={`${name}: ${run}`} />;
  const failed = summary !== undefined && !isActive(summary.status) && summary.status !== "completed";
  if (failed) return <Problem sentence={`${name}: ${summary.error ?? `the job was ${summary.status}.`}`} />;
  return (
    <div class="row">
      <span>{name}:</span>
      {run !== undefined ? (
        <span>done</span>
      ) : kindOf(id) === "job" ? (
        <JobProgress id={id} />
      ) : (
        <span>generating…</span>
      )}
    </div>
  );
}

function Compared({ runs, ids }: { runs: [Run, Run]; ids: [string, string] }) {
  const { query } = usePlace();
  const sides = useMemo(() => sidesOf(...runs), [ids.join()]);
  const shared = sharedQuantities(...sides);
  const asked = quantities.find((one) => one === query.get("q"));
  const quantity = asked !== undefined && shared.includes(asked) ? asked : (shared[0] ?? "norm");
  const summary = useMemo(() => sideBySideSummary(...sides), [sides]);
  const pairs = useMemo(() => pairedTokens(sides[0].tokens, sides[1].tokens), [sides]);
  const figures = useMemo(() => sideFigures(...sides, quantity), [sides, quantity]);
  const [layer, column] = [numberIn(query, "l"), numberIn(query, "c")];
  const pair = column === undefined ? undefined : pairs[column];
  const cell = pair === undefined || layer === undefined ? undefined : { layer, column, pair };
  const pick = (figure: Figure, at: "column" | 0 | 1) => ({
    picks: "selects this cell in every map",
    selected: cell && rowAt(figure, cell.layer, at === "column" ? (cell.column as number) : cell.pair[at]),
    onPick: (row: number) => {
      const [picked, place] = placeOf(figure, row);
      const to = at === "column" ? place : pairs.findIndex((one) => one[at] === place);
      select({ l: picked, c: to < 0 ? undefined : to });
    },
  });
  return (
    <div class="result">
      <Tools runs={runs} ids={ids} />
      <section class="lead" aria-label="Result">
        {summary.map((sentence) => (
          <p key={sentence}>{sentence}</p>
        ))}
      </section>
      <Answers runs={runs} sides={sides} />
      {shared.length > 1 && (
        <p class="row">
          <Choice
            label="Show"
            value={quantity}
            options={shared.map((one) => [one, quantityNames[one]] as const)}
            onChange={(q) => select({ q: q === shared[0] ? undefined : q })}
          />
        </p>
      )}
      {figures.difference === undefined ? (
        <p class="notice">{figures.missing}</p>
      ) : (
        <FigureView
          key={`difference ${quantity}`}
          figure={figures.difference}
          name={`tapline-compare-${quantity}`}
          {...pick(figures.difference, "column")}
          detail={<PickedCell figure={figures.difference} cell={cell} />}
        />
      )}
      <div class="multiples">
        {figures.maps.map((figure, at) => (
          <FigureView
            key={`${figure.id} ${quantity}`}
            figure={figure}
            name={`tapline-compare-${quantity}`}
            {...pick(figure, at as 0 | 1)}
          />
        ))}
      </div>
      <aside class="notice" aria-label="What this does not show">
        <strong>What this does not show</strong>
        {sideBySideCautions.map((sentence) => (
          <p key={sentence}>{sentence}</p>
        ))}
      </aside>
    </div>
  );
}

/** The columns with a cell's place in a figure. */
function placesIn({ columns }: Figure): [layer: number, place: number] {
  const at = (names: string[]) => columns.findIndex(({ name }) => names.includes(name));
  return [at(["layer"]), at(["column", "position"])];
}

function placeOf(figure: Figure, row: number): [layer: number, place: number] {
  const [layer, place] = placesIn(figure);
  const cells = figure.rows[row] ?? [];
  return [Number(cells[layer]), Number(cells[place])];
}

function rowAt(figure: Figure, layer: number, place: number): number | undefined {
  const found = figure.rows.findIndex((_, row) => {
    const [a, b] = placeOf(figure, row);
    return a === layer && b === place;
  });
  return found < 0 ? undefined : found;
}

/** Both readings of the selected cell. */
function PickedCell({
  figure,
  cell,
}: {
  figure: Figure;
  cell: { layer: number; column: number | undefined } | undefined;
}) {
  if (cell?.column === undefined) return null;
  const row = rowAt(figure, cell.layer, cell.column);
  if (row === undefined) return null;
  return (
    <section class="card" aria-label="Selected cell">
      <p class="lines">{figure.details[row]}</p>
      <p class="row">
        <ClearSelection of={["l", "c"]} />
      </p>
    </section>
  );
}

/** Both generated answers, with the words marked that the other one lacks. */
function Answers({ runs, sides }: { runs: [Run, Run]; sides: [Side, Side] }) {
  const readings = runs.flatMap((run) => ("reading" in run ? [run.reading] : []));
  const [one, other] = readings;
  if (one === undefined || other === undefined) return null;
  const stretches = difference(one.answer, other.answer);
  return (
    <section class="card" aria-label="Answers">
      <div class="panes">
        {readings.map((reading, at) => (
          <div key={reading.id}>
            <p class="soft">
              {sides[0].name === sides[1].name ? settingsOf(reading) : sides[at as 0 | 1].name}
              {reading.finish === "length" && ", stopped at the limit"}
            </p>
            <p class="answer-text">
              {stretches
                .filter(({ kind }) => kind === "same" || kind === (at === 0 ? "removed" : "added"))
                .map(({ kind, text }, place) => (
                  <bdi key={place} class={kind === "same" ? "" : "t differs"}>
                    {text}
                  </bdi>
                ))}
            </p>
            {(reading.edits ?? []).some(({ mean_change_length: change }) => change === 0) && (
              <p class="problem">An intervention changed nothing.</p>
            )}
          </div>
        ))}
      </div>
    </section>
  );
}

function Tools({ runs, ids }: { runs: [Run, Run]; ids: [string, string] }) {
  const requests = (): CodeRequest[] =>
    runs.map((run) =>
      "job" in run
        ? jobRequest(run.job.config)
        : serverRequest(run.reading.request.path, run.reading.request.body),
    );
  return (
    <div class="result-tools">
      {ids.map((id, at) =>
        kindOf(id) === "job" ? (
          <a
            key={`${id} ${at}`}
            href={`/jobs/${id}`}
            onClick={follow}
            aria-label={`${at === 0 ? "First" : "Second"} job ${id.slice(0, 8)}`}
          >
            Job <code>{id.slice(0, 8)}</code>
          </a>
        ) : null,
      )}
      <CopyLink path={`/compare/${ids[0]}?with=${ids[1]}`} />
      <Menu label="Export and scripts">
        <RequestCode of="both runs" request={requests} />
      </Menu>
    </div>
  );
}
