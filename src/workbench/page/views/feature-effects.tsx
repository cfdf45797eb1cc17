import type { FeaturePage } from "../../../contracts/index.js";
import { greatest } from "../../../findings/features.js";
import { count, figureOf, signed } from "../../../findings/numbers.js";
import { visible } from "../../../text/visible.js";
import { FeatureLink } from "./feature-link.js";
import { HtmlPicture } from "./picture.js";
import { Head } from "./table.js";

/** Effect of a feature's decoder row on the logits: the tokens that it raises and lowers most. */
export function Logits({ page: { feature, raised, lowered } }: { page: FeaturePage }) {
  if (raised === null || lowered === null) {
    return (
      <p class="soft">This model has no logit lens, so the tokens that the feature raises are unknown.</p>
    );
  }
  const most = greatest([...raised, ...lowered].map(({ effect }) => Math.abs(effect)));
  const sides = [
    { name: "Raises", tokens: raised },
    { name: "Lowers", tokens: lowered },
  ];
  return (
    <HtmlPicture
      title={`Logits of feature ${feature}`}
      name={`tapline-feature-${feature}-logits`}
      numbers={() => ({
        head: ["direction", "token", "token id", "direct logit effect"],
        rows: sides.flatMap(({ name, tokens }) =>
          tokens.map(({ token, token_id, effect }) => [name, visible(token), token_id, effect]),
        ),
      })}
    >
      <div class="logits">
        {sides.map(({ name, tokens }) => (
          <table key={name} aria-label={`${name} the logits of`}>
            <Head titles={[name, { hidden: "effect as a bar" }, { number: "Logit" }]} />
            <tbody>
              {tokens.map(({ token, token_id, effect }) => (
                <tr key={token_id}>
                  <th scope="row">
                    <bdi class="token" title={visible(token)}>
                      {visible(token)}
                    </bdi>
                  </th>
                  <td>
                    <span class="bar" style={{ "--share": (Math.abs(effect) / most).toFixed(3) }} />
                  </td>
                  <td class="number">{signed(effect, 2)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        ))}
      </div>
    </HtmlPicture>
  );
}

/** How often a feature is active how strongly, as columns. */
export function Histogram({ page: { feature, histogram, active_tokens: active } }: { page: FeaturePage }) {
  if (histogram.length === 0) return null;
  const most = greatest(histogram.map(({ tokens }) => tokens));
  const [first, last] = [histogram[0], histogram.at(-1)];
  const step = histogram.length < 2 ? 0 : (histogram[1]?.least ?? 0) - (first?.least ?? 0);
  return (
    <section aria-label="Activations">
      <h3>activations on {count(active, "token")}</h3>
      <HtmlPicture
        title={`Activations of feature ${feature}`}
        name={`tapline-feature-${feature}-activations`}
        numbers={() => ({
          head: ["activation from", "tokens"],
          rows: histogram.map(({ least, tokens }) => [least, tokens]),
        })}
      >
        <div
          class="columns"
          role="img"
          aria-label={histogram
            .filter(({ tokens }) => tokens > 0)
            .map(({ least, tokens }) => `${count(tokens, "token")} from ${figureOf(least)}`)
            .join(", ")}
        >
          {histogram.map(({ least, tokens }) => (
            <div
              key={least}
              title={`${count(tokens, "token")} from ${figureOf(least)}`}
              style={{ height: `${(100 * tokens) / most}%` }}
            />
          ))}
        </div>
        <p class="legend-line ends">
          <span>{figureOf(first?.least ?? 0)}</span>
          <span>most: {count(most, "token")}</span>
          <span>{figureOf((last?.least ?? 0) + step)}</span>
        </p>
      </HtmlPicture>
    </section>
  );
}

interface NeighboursProps {
  page: FeaturePage;
  /** A label that a model has proposed. */
  labelOf: (feature: number) => string | undefined;
}

/** The features with the most similar decoder rows. */
export function Neighbours({ page: { feature, neighbours }, labelOf }: NeighboursProps) {
  if (neighbours.length === 0) return null;
  return (
    <section aria-label="Similar features">
      <h3>similar features</h3>
      <HtmlPicture
        title={`Features similar to feature ${feature}`}
        name={`tapline-feature-${feature}-similar`}
        numbers={() => ({
          head: ["feature", "label", "cosine of the decoder rows"],
          rows: neighbours.map(({ feature, label, cosine }) => [feature, label ?? "", cosine]),
        })}
      >
        <table aria-label="Similar features">
          <Head titles={["Feature", { hidden: "cosine as a bar" }, { number: "Cosine" }]} />
          <tbody>
            {neighbours.map(({ feature: other, label, cosine }) => (
              <tr key={other}>
                <th scope="row">
                  <FeatureLink feature={other} />
                  {(label ?? labelOf(other)) !== undefined && (
                    <>
                      {" "}
                      <bdi class="soft">{label ?? labelOf(other)}</bdi>
                      {label === undefined && <span class="soft"> (machine-made)</span>}
                    </>
                  )}
                </th>
                <td>
                  <span class="bar" style={{ "--share": Math.max(0, cosine).toFixed(3) }} />
                </td>
                <td class="number">{cosine.toFixed(2)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </HtmlPicture>
    </section>
  );
}
