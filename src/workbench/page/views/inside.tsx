import { useState } from "preact/hooks";
import { measuredLayers } from "../../../findings/layers.js";
import { figureOf, percent } from "../../../findings/numbers.js";
import { visible } from "../../../text/visible.js";
import type { AnswerToken, Candidate, FeatureScore, Turn } from "../../wire.js";
import { insideNumbers } from "../chat-numbers.js";
import { known } from "../store.js";
import type { FeatureOf } from "./edits.js";
import { Field } from "./fields.js";
import { Button, Form } from "./form.js";
import { HtmlPicture } from "./picture.js";
import { Head } from "./table.js";

/** What replaces a token: a candidate, a text, or nothing to resample it. */
export interface ForkFrom {
  token_id?: number;
  text?: string;
}

interface InsideProps {
  turn: Turn;
  token: AnswerToken;
  at: number;
  busy: boolean;
  onFork: (token: number, from: ForkFrom) => void;
  onSteer: (feature: FeatureOf) => void;
  onInspect: () => void;
  onClose: () => void;
}

/** One token: its alternatives, and each layer's logit lens and norm at the position that produced it. */
export function Inside({ turn, token, at, busy, onFork, onSteer, onInspect, onClose }: InsideProps) {
  const { candidates, lens, norms, probes, features } = token;
  const rank = candidates?.findIndex(({ token: text }) => text === token.text) ?? -1;
  const layers = turn.layers.map((layer, index) => ({ layer, index })).toReversed();
  const picture = {
    title: `Inside ${visible(token.text)}, token ${at}`,
    name: `tapline-token-${at}`,
    numbers: () => insideNumbers(turn, token),
  };
  return (
    <section class="card inside" aria-label="Inside a token">
      <HtmlPicture {...picture}>
        <h2>
          Inside <bdi class="token">{visible(token.text)}</bdi>
        </h2>
        <p class="soft">
          Token {at}
          {token.id !== undefined && ` · id ${token.id}`}
          {token.probability !== undefined && ` · probability ${percent(token.probability)}`}
          {rank >= 0 && ` · rank ${rank + 1}`}
        </p>
        {candidates === undefined ? (
          <p class="soft">
            No alternatives recorded: this token was inserted by you or carried over from another answer.
          </p>
        ) : (
          <table class="candidates">
            <caption>Alternatives (model probabilities, before temperature)</caption>
            <tbody>
              {candidates.map((candidate) => (
                <tr key={`${candidate.token_id} ${candidate.token}`}>
                  <th scope="row">
                    <bdi class="token">{visible(candidate.token)}</bdi>
                  </th>
                  <Share share={candidate.probability} text={percent(candidate.probability)} />
                  <td>
                    <Button
                      class="quiet"
                      disabled={busy || candidate.token_id < 0}
                      aria-label={`Use this token: ${visible(candidate.token)}`}
                      onClick={() => onFork(at, { token_id: candidate.token_id })}
                    >
                      Use this token
                    </Button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {lens !== undefined && (
          <table class="candidates">
            <caption>{lensCaption(turn)}</caption>
            <Head
              titles={["layer", "token", { hidden: "bar" }, { number: "probability" }, { number: "norm" }]}
            />
            <tbody>
              {layers.map(({ layer, index }) => (
                <LayerRows key={layer} layer={layer} seen={lens[index] ?? []} norm={norms?.[index]} />
              ))}
            </tbody>
          </table>
        )}
        {probes !== undefined && (
          <dl class="facts">
            {Object.entries(probes).map(([name, score]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{score === null ? "not measured here" : score.toFixed(2)}</dd>
              </div>
            ))}
          </dl>
        )}
        {features !== undefined && turn.dictionary !== undefined && (
          <Features features={features} dictionary={turn.dictionary} onSteer={onSteer} />
        )}
      </HtmlPicture>
      <EditToken
        key={`${at} ${token.text}`}
        token={token}
        busy={busy}
        onFork={(text) => onFork(at, { text })}
      />
      <p class="row">
        <Button disabled={busy} onClick={() => onFork(at, {})}>
          Resample from here
        </Button>
        <Button onClick={onInspect}>Inspect all layers up to this token</Button>
        <Button class="quiet" onClick={onClose}>
          Close
        </Button>
      </p>
    </section>
  );
}

/** Names the layers that were measured: a table of some layers does not speak of those between them. */
function lensCaption({ layers, model }: Turn): string {
  const server = known.state?.server;
  const all = server?.model === model ? server?.n_layer : undefined;
  const measured = measuredLayers(layers, all);
  return measured === "each layer"
    ? "What each layer predicts here (logit lens, last layer at the top)"
    : `What ${measured} predict here (logit lens, last one at the top; the layers between them were not measured)`;
}

/** A layer's top prediction, and the others on request. */
function LayerRows({ layer, seen, norm }: { layer: number; seen: Candidate[]; norm: number | undefined }) {
  const [open, setOpen] = useState(false);
  const [top, ...others] = seen;
  return (
    <>
      <tr>
        <th scope="row">
          <Button
            class="quiet bare"
            aria-expanded={open}
            aria-label={`More predictions of layer ${layer}`}
            onClick={() => setOpen(!open)}
          >
            {open ? "▾" : "▸"}
          </Button>
          {layer}
        </th>
        <td>{top !== undefined && <bdi class="token">{visible(top.token)}</bdi>}</td>
        {top === undefined ? (
          <td colSpan={2} />
        ) : (
          <Share share={top.probability} text={percent(top.probability)} />
        )}
        <td class="number">{norm !== undefined && Number.isFinite(norm) && figureOf(norm)}</td>
      </tr>
      {open &&
        others.map(({ token_id, token, probability }) => (
          <tr key={token_id}>
            <td />
            <td>
              <bdi class="token">{visible(token)}</bdi>
            </td>
            <Share share={probability} text={percent(probability)} />
            <td />
          </tr>
        ))}
    </>
  );
}

interface FeaturesProps {
  features: FeatureScore[];
  dictionary: { name: string; layer: number };
  onSteer: (feature: FeatureOf) => void;
}

/** A dictionary's features at the position that produced the token. */
function Features({ features, dictionary, onSteer }: FeaturesProps) {
  if (features.length === 0) {
    return <p class="soft">No feature of {dictionary.name} is active here.</p>;
  }
  const most = features[0]?.activation ?? 1;
  return (
    <table class="candidates">
      <caption>
        Strongest features of <bdi>{dictionary.name}</bdi> at layer {dictionary.layer}
      </caption>
      <tbody>
        {features.map(({ feature, activation }) => (
          <tr key={feature}>
            <th scope="row">{feature}</th>
            <Share share={activation / most} text={figureOf(activation)} />
            <td>
              <Button
                class="quiet"
                aria-label={`Steer with feature ${feature}`}
                onClick={() =>
                  onSteer({ dictionary: dictionary.name, index: feature, layer: dictionary.layer })
                }
              >
                Steer
              </Button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Replaces a token with another text. */
function EditToken({
  token,
  busy,
  onFork,
}: {
  token: AnswerToken;
  busy: boolean;
  onFork: (text: string) => void;
}) {
  const [text, setText] = useState(token.text);
  return (
    <Form class="row" onSubmit={() => !busy && text !== "" && text !== token.text && onFork(text)}>
      <Field label="Replace with" value={text} onChange={setText} />
      <button type="submit" disabled={busy || text === "" || text === token.text}>
        Continue from here
      </button>
    </Form>
  );
}

/** A share as a bar and as a number, in two cells. */
function Share({ share, text }: { share: number; text: string }) {
  return (
    <>
      <td>
        <span class="bar" style={{ "--share": String(Math.max(0, Math.min(1, share))) }} />
      </td>
      <td class="number">{text}</td>
    </>
  );
}
