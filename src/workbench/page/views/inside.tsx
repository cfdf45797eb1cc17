import { figureOf, percent } from "../../../report/figure.js";
import { visible } from "../../../terminal/text.js";
import type { AnswerToken, Candidate, Turn } from "../../wire.js";

interface InsideProps {
  turn: Turn;
  token: AnswerToken;
  at: number;
  busy: boolean;
  onFork: (token: number, candidate: Candidate | undefined) => void;
  onInspect: () => void;
  onClose: () => void;
}

/** What one token was chosen from: candidates, and each layer's lens and norm in the row that chose it. */
export function Inside({ turn, token, at, busy, onFork, onInspect, onClose }: InsideProps) {
  const { candidates, lens, norms, probes } = token;
  const rank = candidates?.findIndex(({ token: text }) => text === token.text) ?? -1;
  const layers = turn.layers.map((layer, index) => ({ layer, index })).toReversed();
  return (
    <section class="card inside" aria-label="Inside a token">
      <h2>
        Inside <bdi class="token">{visible(token.text)}</bdi>
      </h2>
      <p class="soft">
        Token {at}
        {token.id !== undefined && `, number ${token.id}`}
        {token.probability !== undefined && `, probability ${percent(token.probability)}`}
        {rank >= 0 && `, rank ${rank + 1}`}
      </p>
      {candidates === undefined ? (
        <p class="soft">
          The server told no candidates of this token: it was put there, or kept from another answer.
        </p>
      ) : (
        <table class="candidates">
          <caption>What else could have stood here, before temperature and other sampling</caption>
          <tbody>
            {candidates.map((candidate) => (
              <tr key={`${candidate.token_id} ${candidate.token}`}>
                <th scope="row">
                  <bdi class="token">{visible(candidate.token)}</bdi>
                </th>
                <td>
                  <Bar share={candidate.probability} />
                </td>
                <td class="number">{percent(candidate.probability)}</td>
                <td>
                  <button
                    type="button"
                    class="quiet"
                    disabled={busy || candidate.token_id < 0}
                    aria-label={`Go on with ${visible(candidate.token)}`}
                    onClick={() => onFork(at, candidate)}
                  >
                    Go on
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {lens !== undefined && (
        <table class="candidates">
          <caption>What each block's output would answer (logit lens), the deepest on top</caption>
          <thead>
            <tr>
              <th scope="col">layer</th>
              <th scope="col">token</th>
              <th scope="col">
                <span class="visually-hidden">bar</span>
              </th>
              <th scope="col" class="number">
                probability
              </th>
              <th scope="col" class="number">
                norm
              </th>
            </tr>
          </thead>
          <tbody>
            {layers.map(({ layer, index }) => {
              const [top] = lens[index] ?? [];
              const norm = norms?.[index];
              return (
                <tr key={layer}>
                  <th scope="row">{layer}</th>
                  <td
                    title={(lens[index] ?? [])
                      .map((c) => `${visible(c.token)} ${percent(c.probability)}`)
                      .join("\n")}
                  >
                    {top === undefined ? "" : <bdi class="token">{visible(top.token)}</bdi>}
                  </td>
                  <td>{top !== undefined && <Bar share={top.probability} />}</td>
                  <td class="number">{top !== undefined && percent(top.probability)}</td>
                  <td class="number">{norm !== undefined && Number.isFinite(norm) && figureOf(norm)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      {probes !== undefined && (
        <dl class="facts">
          {Object.entries(probes).map(([name, score]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{score === null ? "not read here" : score.toFixed(2)}</dd>
            </div>
          ))}
        </dl>
      )}
      <p class="row">
        <button type="button" disabled={busy} onClick={() => onFork(at, undefined)}>
          Choose again from here
        </button>
        <button type="button" onClick={onInspect}>
          Layers of the text up to here
        </button>
        <button type="button" class="quiet" onClick={onClose}>
          Close
        </button>
      </p>
    </section>
  );
}

export function Bar({ share }: { share: number }) {
  return <span class="bar" style={{ "--share": String(Math.max(0, Math.min(1, share))) }} />;
}
