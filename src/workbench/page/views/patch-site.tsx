import type { ComponentChildren } from "preact";
import type { CompareResult } from "../../../contracts/index.js";
import { percent } from "../../../findings/numbers.js";
import { visible } from "../../../text/visible.js";
import type { TextTokens } from "../../wire.js";
import { type JobFindings, submit } from "../jobs.js";
import { effectOf, siteDetail, siteIn } from "../patch-site.js";
import { post } from "../session.js";
import { Button, Problem, useTrying } from "./form.js";
import { ClearSelection, JobResult } from "./job-result.js";
import { DataTable } from "./table.js";

/** A site's numbers, and the continuation with only this site patched. */
export function SelectedSite({
  findings,
  query,
}: {
  findings: JobFindings<"patch_sweep">;
  query: URLSearchParams;
}) {
  const { problem, trying } = useTrying();
  const effect = query.get("e");
  const site = siteIn(query);
  const detail = site === undefined ? undefined : siteDetail(findings.figures, site);
  if (site === undefined || detail === undefined) return null;
  const { job } = findings;
  const generate = () =>
    trying(async ({ select }) => {
      const { donor, tokens, body } = effectOf(job, site);
      const { tokens: found } = await post<{ tokens: TextTokens[] }>("/api/tokens", { texts: [donor] });
      if (JSON.stringify(found[0]?.map(({ id }) => id)) !== JSON.stringify(tokens)) {
        throw new Error(
          "This prefix tokenizes differently on its own, so its state would not match the map.",
        );
      }
      select({ e: await submit(body) });
    });
  return (
    <SiteCard
      detail={detail}
      tool={
        job.result.pairs.length === 1 && (
          <Button class="main" onClick={() => void generate()}>
            Generate with this patch
          </Button>
        )
      }
    >
      <Problem sentence={problem} />
      {effect !== null && /^[0-9a-f]{32}$/.test(effect) && (
        <JobResult key={effect} id={effect} operation="compare" shows={() => false}>
          {({ job }) => <Effect result={job.result} />}
        </JobResult>
      )}
    </SiteCard>
  );
}

interface SiteCardProps {
  detail: string | undefined;
  tool?: ComponentChildren;
  children?: ComponentChildren;
}

/** A site's numbers, with what can be done with it. */
export function SiteCard({ detail, tool, children }: SiteCardProps) {
  return (
    <section class="card" aria-label="Selected site">
      <p class="lines">{detail}</p>
      <p class="row">
        {tool}
        <ClearSelection of={["l", "t", "p", "h", "e"]} />
      </p>
      {children}
    </section>
  );
}

/** The continuations: unpatched, patched, and with a norm-matched random change. */
function Effect({ result: { trials } }: { result: CompareResult }) {
  const [trial] = trials;
  if (trial === undefined) return null;
  const { target_token, baseline, baseline_probability, output, probability, control } = trial;
  const rows = [
    ["unpatched", baseline, percent(baseline_probability)],
    ["patched", output, percent(probability)],
    ...(control === undefined
      ? []
      : [["random change (norm-matched)", control.output, percent(control.probability)]]),
  ];
  const head = ["Run", "Continues with", `Probability of ${visible(target_token)}`];
  return <DataTable head={head} rows={rows} label="next tokens" />;
}
