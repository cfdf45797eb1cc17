import { useMemo } from "preact/hooks";
import type { CompareConfig, CompareResult } from "../../../contracts/index.js";
import { liveLimits } from "../../../contracts/live-limits.js";
import { gridFinding } from "../../../findings/dose-grid.js";
import type { Figure } from "../../../findings/figure.js";
import { percent } from "../../../findings/numbers.js";
import { doseGrid, type TriedLayer } from "../../../operations/compare/figures-dose-grid.js";
import { visible } from "../../../text/visible.js";
import { addEdit } from "../chat-settings.js";
import { isActive, jobRequest, useAllFindings } from "../jobs.js";
import { numberIn } from "../lists.js";
import { select, usePlace } from "../router.js";
import { post } from "../session.js";
import { known, useTopic } from "../store.js";
import { newEdit } from "./edits.js";
import { FigureView } from "./figure.js";
import { Button, Problem, useTrying } from "./form.js";
import { ClearSelection, JobProgress, JobResult } from "./job-result.js";
import { ScriptMenu } from "./request-code.js";
import { DataTable } from "./table.js";

/** The maximum number of layers per direction. */
const mostVectorLayers = liveLimits.layers;

interface Tried extends TriedLayer {
  id: string;
  config: CompareConfig;
  result?: CompareResult;
}

/** One comparison per layer, as a grid of layers and strengths that fills while they run. */
export function DoseGrid({ ids, name }: { ids: string[]; name: string }) {
  useTopic("state");
  const { query } = usePlace();
  const found = useAllFindings(ids);
  const tried = useMemo(
    () =>
      ids.flatMap((id): Tried[] => {
        const job = found.get(id);
        if (typeof job !== "object" || job.job.operation !== "compare") return [];
        const { config, result } = job.job;
        const [layer = 0] = config.layers;
        return [{ id, layer, strengths: config.strengths, config, ...(result && { result }) }];
      }),
    [ids.join(), found],
  );
  const figures = useMemo(() => (tried.length === 0 ? [] : doseGrid(tried)), [tried]);
  const says = gridFinding(tried.map(({ layer, result }) => ({ layer, trials: result?.trials ?? [] })));
  const active = (known.state?.jobs ?? []).filter(({ id, status }) => ids.includes(id) && isActive(status));
  const running = active.find(({ status }) => status === "running") ?? active[0];
  const [layer, strength] = [numberIn(query, "l"), numberIn(query, "s")];
  const chosen = tried.find((one) => one.layer === layer) ?? (ids.length === 1 ? tried[0] : undefined);
  const cancelAll = () => Promise.all(active.map(({ id }) => post(`/api/jobs/${id}/cancel`).catch(() => {})));
  const pick = (figure: Figure, row: number) => {
    const [at, dose] = figure.rows[row] ?? [];
    select({ l: Number(at), s: Number(dose) });
  };
  return (
    <section class="result" aria-label="Dose-response">
      {running !== undefined && (
        <section class="card" aria-label="Progress">
          <p>
            {ids.length - active.length} of {ids.length} layers measured
          </p>
          <JobProgress id={running.id} />
          {active.length > 1 && <Button onClick={() => void cancelAll()}>Cancel all</Button>}
        </section>
      )}
      {ids.map((id) => {
        const problem = found.get(id);
        return typeof problem === "string" ? (
          <Problem key={id} sentence={`Job ${id.slice(0, 8)}: ${problem}`} />
        ) : null;
      })}
      {says !== "" && running === undefined && (
        <div class="lead">
          <p>{says}</p>
        </div>
      )}
      <div class={figures.length > 1 ? "twins" : ""}>
        {figures.map((figure, at) => (
          <FigureView
            key={figure.id}
            figure={figure}
            name={`tapline-steer-${ids[0]?.slice(0, 8)}`}
            picks="shows both continuations"
            onPick={(row) => pick(figure, row)}
            selected={rowAt(figure, chosen?.layer, strength)}
            detail={
              at === 0 &&
              chosen?.result !== undefined && (
                <SelectedCell
                  tried={chosen}
                  layers={tried.map((one) => one.layer)}
                  strength={strength}
                  name={name}
                />
              )
            }
          />
        ))}
      </div>
      {tried.length > 0 && (
        <div class="row">
          <ScriptMenu request={tried.map(({ config }) => jobRequest(config))} />
        </div>
      )}
      {chosen !== undefined && <JobResult key={chosen.id} id={chosen.id} />}
    </section>
  );
}

/** The row of a layer and a strength. */
function rowAt(
  { rows }: Figure,
  layer: number | undefined,
  strength: number | undefined,
): number | undefined {
  if (layer === undefined || strength === undefined) return undefined;
  const row = rows.findIndex(([at, dose]) => Number(at) === layer && Number(dose) === strength);
  return row < 0 ? undefined : row;
}

/** A cell's continuations: baseline, steered, and with a random vector; and a button to try it in the chat. */
function SelectedCell({
  tried: { layer, config, result },
  layers,
  strength,
  name,
}: {
  tried: Tried;
  layers: number[];
  strength: number | undefined;
  name: string;
}) {
  const { problem, trying } = useTrying();
  const trials = result?.trials.filter((trial) => trial.strength === strength) ?? [];
  const { positives, negatives } = config;
  if (strength === undefined || trials.length === 0) return null;
  const rows = trials.flatMap((trial) => {
    const { prompt, baseline, baseline_probability, output, probability, control } = trial;
    return [
      [prompt, "baseline", baseline, percent(baseline_probability)],
      [prompt, "steered", output, percent(probability)],
      ...(control === undefined
        ? []
        : [[prompt, "random vector (norm-matched)", control.output, percent(control.probability)]]),
    ];
  });
  const head = ["Prompt", "Run", "Continuation", `Probability of ${visible(trials[0]?.target_token ?? "")}`];
  const intoChat = () =>
    trying(async ({ go }) => {
      const saved = [...new Set([layer, ...layers])].slice(0, mostVectorLayers);
      await post("/api/vectors", { name, positive: positives, negative: negatives, layers: saved });
      // As measured: at the last token of each pass, with the same strength within the range of the slider.
      const as = { strength: Math.max(-1, Math.min(1, strength)), positions: "last" } as const;
      addEdit({ ...newEdit("steer", layer, name), ...as });
      go("/chat");
    });
  return (
    <section class="card" aria-label="Selected cell">
      <h2>
        Layer {layer}, strength {strength}
      </h2>
      <DataTable head={head} rows={rows} label="continuations" />
      <p class="row">
        {positives !== undefined && negatives !== undefined && (
          <Button class="main" onClick={() => void intoChat()}>
            Try in chat as {name}
          </Button>
        )}
        <ClearSelection of={["l", "s"]} />
      </p>
      <Problem sentence={problem} />
    </section>
  );
}
