import type { FeaturePage, FeaturesResult } from "../../../contracts/index.js";
import { greatestActivation, shadeOf } from "../../../findings/features.js";
import { figureOf, percent } from "../../../findings/numbers.js";
import { visible } from "../../../findings/text.js";
import { chatSettings } from "../chat-settings.js";
import type { JobFindings } from "../jobs.js";
import { submit } from "../jobs.js";
import { follow, select } from "../router.js";
import { newEdit } from "./edits.js";
import { Button, Problem, useTrying } from "./form.js";
import { HtmlPicture } from "./picture.js";

/** Features that one job looks at one by one. */
const mostPages = 16;

/**
 * One feature by itself: where in the job's texts it is active, each token shaded, in groups of quantiles. What it raises
 * and lowers, its neighbours and its activations are figures.
 */
export function FeatureCard({ findings, feature }: { findings: JobFindings<"features">; feature: number }) {
  const { result } = findings.job;
  const page = result.pages?.find((one) => one.feature === feature);
  const known = result.features.find((one) => one.feature === feature);
  const { name } = result.dictionary;
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
        Of the dictionary <bdi>{name}</bdi> at block {result.layer}.
        {page !== undefined && ` Active on ${page.active_tokens} of ${result.fidelity.tokens} tokens.`}
        {known !== undefined &&
          ` Its greatest activation is ${figureOf(known.max)}, the mean where it is active ${figureOf(known.mean)}; it is active on ${percent(known.frequency)}.`}
      </p>
      {page === undefined ? (
        <NoPage findings={findings} feature={feature} />
      ) : (
        <Examples page={page} result={result} />
      )}
      <p class="row">
        <a
          class="button"
          href="/chat"
          onClick={(event) => {
            chatSettings.edits = [
              ...chatSettings.edits,
              newEdit("steer", result.layer, "", { dictionary: name, index: feature, layer: result.layer }),
            ];
            follow(event);
          }}
        >
          Steer with it in chat
        </a>
        <Button class="quiet" onClick={() => select({ f: undefined })}>
          All features of these texts
        </Button>
      </p>
      {page !== undefined && page.neighbours.length > 0 && (
        <p class="row">
          Near it:
          {page.neighbours.map(({ feature: other, label }) => (
            <a
              key={other}
              href={`?f=${other}`}
              onClick={(event) => {
                event.preventDefault();
                select({ f: other });
              }}
            >
              {other}
              {label !== undefined && (
                <>
                  : <bdi>{label}</bdi>
                </>
              )}
            </a>
          ))}
        </p>
      )}
    </section>
  );
}

/** A feature that the job did not look at by itself: another job does, over the same texts. */
function NoPage({ findings: { job }, feature }: { findings: JobFindings<"features">; feature: number }) {
  const { problem, trying } = useTrying();
  const pages = pagesBeside(feature, job.result.features);
  return (
    <>
      <p class="soft">
        Where it is active, what it raises and lowers and what is near it is in no job yet. One more over the
        same texts looks at it and at the strongest others.
      </p>
      <Button
        class="main"
        onClick={() =>
          void trying(async ({ go }) =>
            go(`/features/${await submit({ ...job.config, pages })}?f=${feature}`),
          )
        }
      >
        Look at it
      </Button>
      <Problem sentence={problem} />
    </>
  );
}

/** A feature and the strongest others, as many as one job looks at. */
export function pagesBeside(feature: number, features: readonly { feature: number }[]): number[] {
  return [...new Set([feature, ...features.map((one) => one.feature)])].slice(0, mostPages);
}

/** Each token shaded by the feature's activation there; the numbers stand behind. */
function Examples({
  page: { feature, groups },
  result: { texts },
}: {
  page: FeaturePage;
  result: FeaturesResult;
}) {
  const most = greatestActivation(groups);
  if (groups.length === 0) return <p>It is active in none of these texts.</p>;
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

/** Every token of every example, with the feature's activation there. */
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
