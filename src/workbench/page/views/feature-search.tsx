import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { FeaturesResult } from "../../../contracts/index.js";
import { featuresOn, searchSentence } from "../../../findings/feature-search.js";
import { greatest, shadeOf } from "../../../findings/features.js";
import { figureOf } from "../../../findings/numbers.js";
import { visible } from "../../../text/visible.js";
import { FeatureLink } from "./feature-link.js";
import { Field } from "./fields.js";
import { HtmlPicture } from "./picture.js";
import { Table } from "./table.js";

/** Texts and features that are listed. */
const [textsShown, featuresShown] = [12, 12];

const titles = [
  "Feature",
  ...[{ number: "Mean on the word" }, { number: "Maximum" }, { number: "On its tokens" }],
  { number: "On other tokens" },
];

/** The texts token by token, and the features that are active on a word. */
export function FeatureSearchCard({ result }: { result: FeaturesResult }) {
  const [word, setWord] = useState("");
  const list = useRef<HTMLOListElement>(null);
  // With the keyboard, the field does the same.
  useEffect(() => {
    const ending = new AbortController();
    const pick = ({ target }: MouseEvent) => {
      const token = target instanceof Element ? target.closest<HTMLElement>("[data-word]") : null;
      if (token?.dataset.word) setWord(token.dataset.word);
    };
    list.current?.addEventListener("click", pick, { signal: ending.signal });
    return () => ending.abort();
  }, []);
  const search = useMemo(() => featuresOn(result, word), [result, word]);
  const most = greatest(
    result.texts.flatMap(({ top }) => top.map((features) => features[0]?.activation ?? 0)),
  );
  const listed = search.features.slice(0, featuresShown);
  const others = search.tokens - search.places.size;
  return (
    <section class="card" aria-label="Search by text">
      <h2>Which features fire on this word?</h2>
      <p class="row">
        <Field label="Word" placeholder="a word of these texts" value={word} onChange={setWord} />
        <span class="soft">or click one below</span>
      </p>
      <HtmlPicture
        title="Texts by their strongest features"
        name="tapline-features-texts"
        numbers={() => ({
          head: ["text", "position", "token", "feature", "activation"],
          rows: result.texts.flatMap(({ tokens, top }, text) =>
            top.flatMap((features, at) =>
              features.map(({ feature, activation }) => [
                text,
                at,
                visible(tokens[at] ?? ""),
                feature,
                activation,
              ]),
            ),
          ),
        })}
      >
        <p class="legend-line">
          Strongest activation: 0 <span class="ramp" /> {figureOf(most)}
        </p>
        <ol class="plain token-lines" ref={list}>
          {result.texts.slice(0, textsShown).map(({ tokens, top }, text) => (
            <li key={text}>
              {tokens.map((token, at) => {
                const activation = top[at]?.[0]?.activation ?? 0;
                const found = search.places.has(`${text} ${at}`);
                return (
                  <bdi
                    key={at}
                    class={`t${activation > 0 ? " shaded" : ""}${found ? " selected" : ""}`}
                    style={`--share:${shadeOf(activation, most).toFixed(3)}`}
                    title={(top[at] ?? [])
                      .map((one) => `${one.feature}: ${figureOf(one.activation)}`)
                      .join(", ")}
                    data-word={token.trim()}
                  >
                    {visible(token)}
                  </bdi>
                );
              })}
            </li>
          ))}
        </ol>
      </HtmlPicture>
      {result.texts.length > textsShown && (
        <p class="soft">
          The first {textsShown} of {result.texts.length} texts; the search covers all.
        </p>
      )}
      <p role="status">{word.trim() !== "" && searchSentence(word, search)}</p>
      {word.trim() !== "" && listed.length > 0 && (
        <Table label={`Features on “${word.trim()}”`} titles={titles}>
          {listed.map(({ feature, mean, max, on, elsewhere }) => (
            <tr key={feature}>
              <th scope="row">
                <FeatureLink feature={feature} />
              </th>
              <td class="number">{figureOf(mean)}</td>
              <td class="number">{figureOf(max)}</td>
              <td class="number">{`${on} of ${search.places.size}`}</td>
              <td class="number">{`${elsewhere} of ${others}`}</td>
            </tr>
          ))}
        </Table>
      )}
      <p class="soft">Of each token, the result has the strongest features only.</p>
    </section>
  );
}
