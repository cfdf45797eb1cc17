import type { FeaturePage, FeaturesResult } from "../../../contracts/index.js";
import type { ChangedPoint } from "../../../contracts/names.js";
import { greatestActivation, shadeOf } from "../../../findings/features.js";
import { labelKey } from "../../../findings/label-finding.js";
import { figureOf, percent } from "../../../findings/numbers.js";
import { visible } from "../../../text/visible.js";
import { addEdit } from "../chat-settings.js";
import { useLabels } from "../feature-labels.js";
import { type JobFindings, submit } from "../jobs.js";
import { select } from "../router.js";
import { ChatLink } from "./chat-settings.js";
import { newEdit } from "./edits.js";
import { Histogram, Logits, Neighbours } from "./feature-effects.js";
import { FeatureLabel } from "./feature-label.js";
import { Button, Problem, useTrying } from "./form.js";
import { HtmlPicture } from "./picture.js";

/** The maximum number of features with details per job. */
const mostPages = 16;

/**
 * One feature on one screen: the texts where it is active with each token shaded and grouped by quantile, its logit effects,
 * activations and neighbours.
 */
export function FeatureCard({ findings, feature }: { findings: JobFindings<"features">; feature: number }) {
  const { result } = findings.job;
  const page = result.pages?.find((one) => one.feature === feature);
  const known = result.features.find((one) => one.feature === feature);
  const { name, sha256 } = result.dictionary;
  const labels = useLabels();
  const machine = labels[labelKey(sha256, feature)];
  return (
    <section class="card" aria-label={`Feature ${feature}`}>
      <h2>
        Feature {feature}
        {page?.label !== undefined && (
          <>
            : <bdi>{page.label}</bdi>
          </>
        )}
      </h2>
      <p>
        Dictionary <bdi>{name}</bdi>, layer {result.layer}
        {page !== undefined && ` · active on ${page.active_tokens} of ${result.fidelity.tokens} tokens`}
        {known !== undefined &&
          ` · max activation ${figureOf(known.max)} · mean when active ${figureOf(known.mean)} · active on ${percent(known.frequency)} of tokens`}
      </p>
      {page !== undefined && (
        <FeatureLabel
          key={`${findings.job.id} ${feature}`}
          job={findings.job.id}
          sha256={sha256}
          feature={feature}
          label={machine}
        />
      )}
      {page === undefined ? (
        <NoPage findings={findings} feature={feature} />
      ) : (
        <div class="feature-parts">
          <Examples page={page} result={result} />
          <Logits page={page} />
          <div>
            <Histogram page={page} />
            <Neighbours page={page} labelOf={(other) => labels[labelKey(sha256, other)]?.label} />
          </div>
        </div>
      )}
      <p class="row">
        <ChatLink
          prepare={() => {
            const { layer, writes, point = "block_out" } = result;
            const where = { layer, point: (writes ?? point) as ChangedPoint };
            addEdit(newEdit("steer", layer, "", { dictionary: name, index: feature, ...where }));
          }}
        >
          Steer with this feature in chat
        </ChatLink>
        <Button class="quiet" onClick={() => select({ f: undefined })}>
          Back to all features
        </Button>
      </p>
    </section>
  );
}

/** Offers a job over the same texts that computes the details of a feature. */
function NoPage({ findings: { job }, feature }: { findings: JobFindings<"features">; feature: number }) {
  const { problem, trying } = useTrying();
  const pages = pagesBeside(feature, job.result.features);
  return (
    <>
      <p class="soft">
        No details for this feature yet. Run a job on these texts to compute its examples, logits and
        neighbours.
      </p>
      <Button
        class="main"
        onClick={() =>
          void trying(async ({ go }) =>
            go(`/features/${await submit({ ...job.config, pages })}?f=${feature}`),
          )
        }
      >
        Compute feature details
      </Button>
      <Problem sentence={problem} />
    </>
  );
}

/** A feature and the strongest others, up to the maximum per job. */
export function pagesBeside(feature: number, features: readonly { feature: number }[]): number[] {
  return [...new Set([feature, ...features.map((one) => one.feature)])].slice(0, mostPages);
}

/** Examples with each token shaded by the feature's activation. */
function Examples({
  page: { feature, groups },
  result: { texts },
}: {
  page: FeaturePage;
  result: FeaturesResult;
}) {
  const most = greatestActivation(groups);
  if (groups.length === 0) return <p>Not active in any of these texts.</p>;
  return (
    <HtmlPicture
      title={`Examples of feature ${feature}`}
      name={`tapline-feature-${feature}-examples`}
      numbers={() => ({ head: columnsOfExamples, rows: rowsOfExamples(groups, texts) })}
    >
      <p class="legend-line">
        Activation: 0 <span class="ramp" /> {figureOf(most)}
      </p>
      <div class="examples">
        {groups.map(({ name, examples }) => (
          <section key={name} aria-label={name === "top" ? "Strongest" : name}>
            <h3>{name === "top" ? "strongest" : `${name} of its activations`}</h3>
            <ol class="plain">
              {examples.map(({ text, token, activation, from, activations }) => (
                <li key={`${text} ${token}`}>
                  {activations.map((value, at) => (
                    <bdi
                      key={at}
                      class={value > 0 ? "t shaded" : "t"}
                      style={`--share:${shadeOf(value, most).toFixed(3)}`}
                      title={figureOf(value)}
                    >
                      {visible(texts[text]?.tokens[from + at] ?? "")}
                    </bdi>
                  ))}{" "}
                  <span class="number">{figureOf(activation)}</span>
                </li>
              ))}
            </ol>
          </section>
        ))}
      </div>
    </HtmlPicture>
  );
}

const columnsOfExamples = ["group", "example", "text", "position", "token", "activation", "strongest"];

/** Every token of every example, with the feature's activation. */
function rowsOfExamples(
  groups: FeaturePage["groups"],
  texts: FeaturesResult["texts"],
): (string | number)[][] {
  return groups.flatMap(({ name, examples }) =>
    examples.flatMap(({ text, token, from, activations }, at) =>
      activations.map((activation, index) => [
        ...[name === "top" ? "strongest" : name, at + 1, text, from + index],
        ...[visible(texts[text]?.tokens[from + index] ?? ""), activation, from + index === token ? 1 : 0],
      ]),
    ),
  );
}
