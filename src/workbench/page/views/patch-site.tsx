import type { CompareResult } from "../../../contracts/index.js";
import { percent } from "../../../findings/numbers.js";
import { visible } from "../../../findings/text.js";
import type { TextTokens } from "../../wire.js";
import { type JobFindings, submit } from "../jobs.js";
import { effectOf, siteIn, toldOf } from "../patch-site.js";
import { post } from "../session.js";
import { Button, Problem, useTrying } from "./form.js";
import { JobResult, LetGo } from "./job-result.js";
import { DataTable } from "./table.js";

/** A site's numbers, and what its state alone does to the next tokens. */
export function ChosenSite({
  findings,
  query,
}: {
  findings: JobFindings<"patch_sweep">;
  query: URLSearchParams;
}) {
  const { problem, trying } = useTrying();
  const effect = query.get("e");
  const site = siteIn(query);
  const told = site === undefined ? undefined : toldOf(findings.figures, site);
  if (site === undefined || told === undefined) return null;
  const { job } = findings;
  const look = () =>
    trying(async ({ select }) => {
      const { donor, tokens, body } = effectOf(job, site);
      const { tokens: found } = await post<{ tokens: TextTokens[] }>("/api/tokens", { texts: [donor] });
      if (JSON.stringify(found[0]?.map(({ id }) => id)) !== JSON.stringify(tokens)) {
        throw new Error(
          "The text up to this token has other tokens by itself; its state is not what the map has.",
        );
      }
      select({ e: await submit(body) });
    });
  return (
    <section class="card" aria-label="Chosen site">
      <p class="lines">{told}</p>
      <p class="row">
        {job.result.pairs.length === 1 && (
          <Button class="main" onClick={() => void look()}>
            What it does to the next tokens
          </Button>
        )}
        <LetGo of={["l", "t", "p", "h", "e"]} />
      </p>
      <Problem sentence={problem} />
      {effect !== null && /^[0-9a-f]{32}$/.test(effect) && (
        <JobResult key={effect} id={effect} operation="compare" shows={() => false}>
          {({ job }) => <Effect result={job.result} />}
        </JobResult>
      )}
    </section>
  );
}

/** What the model goes on with: by itself, with the state, and with a random change that is as long. */
function Effect({ result: { trials } }: { result: CompareResult }) {
  const [trial] = trials;
  if (trial === undefined) return null;
  const { target_token, baseline, baseline_probability, output, probability, control } = trial;
  const rows = [
    ["the run by itself", baseline, percent(baseline_probability)],
    ["with this state", output, percent(probability)],
    ...(control === undefined
      ? []
      : [["with a random change as long", control.output, percent(control.probability)]]),
  ];
  const head = ["run", "goes on with", `probability of ${visible(target_token)}`];
  return <DataTable head={head} rows={rows} label="next tokens" />;
}
