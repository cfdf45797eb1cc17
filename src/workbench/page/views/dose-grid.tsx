import { useMemo } from "preact/hooks";
import type { CompareConfig, CompareResult } from "../../../contracts/index.js";
import { liveLimits } from "../../../contracts/live-limits.js";
import type { Figure } from "../../../findings/figure.js";
import { percent } from "../../../findings/numbers.js";
import { visible } from "../../../findings/text.js";
import { doseGrid, type TriedLayer } from "../../../operations/compare/figures-dose-grid.js";
import { chatSettings } from "../chat-settings.js";
import { isGoing, jobRequest, useAllFindings } from "../jobs.js";
import { select, usePlace } from "../router.js";
import { post } from "../session.js";
import { known, useTopic } from "../store.js";
import { newEdit } from "./edits.js";
import { FigureView } from "./figure.js";
import { Button, Problem, useTrying } from "./form.js";
import { JobProgress, JobResult, LetGo } from "./job-result.js";
import { RequestCode } from "./request-code.js";
import { DataTable } from "./table.js";

/** As many as one direction is made for at a time. */
const mostVectorLayers = liveLimits.layers;

interface Tried extends TriedLayer {
  id: string;
  config: CompareConfig;
  result?: CompareResult;
}

/** One comparison a layer, as a grid of layers and strengths that grows while they run. */
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
  const going = (known.state?.jobs ?? []).filter(({ id, status }) => ids.includes(id) && isGoing(status));
  const running = going.find(({ status }) => status === "running") ?? going[0];
  const [layer, strength] = ["l", "s"].map((key) => (query.has(key) ? Number(query.get(key)) : undefined));
  const chosen = tried.find((one) => one.layer === layer) ?? (ids.length === 1 ? tried[0] : undefined);
  const cancelAll = () => Promise.all(going.map(({ id }) => post(`/api/jobs/${id}/cancel`).catch(() => {})));
  const pick = (figure: Figure, row: number) => {
    const [at, dose] = figure.rows[row] ?? [];
    select({ l: Number(at), s: Number(dose) });
  };
  return (
    <section class="result" aria-label="Dose and response">
      {running !== undefined && (
        <section class="card" aria-label="Progress">
          <p>
            {ids.length - going.length} of {ids.length} layers are measured.
          </p>
          <JobProgress id={running.id} />
          {going.length > 1 && <Button onClick={() => void cancelAll()}>Cancel all</Button>}
        </section>
      )}
      {ids.map((id) => {
        const problem = found.get(id);
        return typeof problem === "string" ? (
          <Problem key={id} sentence={`Job ${id.slice(0, 8)}: ${problem}`} />
        ) : null;
      })}
      <div class={figures.length > 1 ? "twins" : ""}>
        {figures.map((figure) => (
          <FigureView
            key={figure.id}
            figure={figure}
            name={`tapline-steer-${ids[0]?.slice(0, 8)}`}
            picks="shows both answers"
            onPick={(row) => pick(figure, row)}
          />
        ))}
      </div>
      {chosen?.result !== undefined && (
        <ChosenCell tried={chosen} layers={tried.map((one) => one.layer)} strength={strength} name={name} />
      )}
      {tried.length > 0 && <RequestCode request={tried.map(({ config }) => jobRequest(config))} />}
      {chosen !== undefined && <JobResult key={chosen.id} id={chosen.id} />}
    </section>
  );
}

/** What a cell's answers say, without the direction, with it, and with a random one; and the way to the chat. */
function ChosenCell({
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
      [prompt, "the model's own", baseline, percent(baseline_probability)],
      [prompt, "with the direction", output, percent(probability)],
      ...(control === undefined
        ? []
        : [[prompt, "with a random vector as long", control.output, percent(control.probability)]]),
    ];
  });
  const head = ["prompt", "run", "goes on with", `probability of ${visible(trials[0]?.target_token ?? "")}`];
  const intoChat = () =>
    trying(async ({ go }) => {
      const kept = [...new Set([layer, ...layers])].slice(0, mostVectorLayers);
      await post("/api/vectors", { name, positive: positives, negative: negatives, layers: kept });
      const edit = newEdit("steer", layer, name);
      // As it was measured: at the last token of each pass, and as strong, as far as the slider goes.
      chatSettings.edits = [
        ...chatSettings.edits,
        { ...edit, strength: Math.max(-1, Math.min(1, strength)), positions: "last" },
      ];
      go("/chat");
    });
  return (
    <section class="card" aria-label="Chosen cell">
      <h2>
        Layer {layer}, strength {strength}
      </h2>
      <DataTable head={head} rows={rows} label="both answers" />
      <p class="row">
        {positives !== undefined && negatives !== undefined && (
          <Button class="main" onClick={() => void intoChat()}>
            Try in chat as {name}
          </Button>
        )}
        <LetGo of={["l", "s"]} />
      </p>
      <Problem sentence={problem} />
    </section>
  );
}
