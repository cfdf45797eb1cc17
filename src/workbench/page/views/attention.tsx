import { useEffect, useMemo, useState } from "preact/hooks";
import type { AttentionHead, InspectResult } from "../../../contracts/index.js";
import { visible } from "../../../findings/text.js";
import { attentionHead } from "../../../operations/inspect/figures-attention-head.js";
import type { HeadPicture } from "../../wire.js";
import { select, usePlace } from "../router.js";
import { call } from "../session.js";
import { known, useTopic } from "../store.js";
import { Choice } from "./fields.js";
import { FigureView } from "./figure.js";
import { Problem } from "./form.js";

/** Notes in the address which head is shown. */
export function chooseHead(layer: number, head: number): void {
  select({ al: layer, ah: head });
}

/** One head of the attention that a job kept, chosen by layer and head, as a map of tokens over tokens. */
export function Attention({ id, name, result }: { id: string; name: string; result: InspectResult }) {
  const { query } = usePlace();
  const kept = result.attention ?? [];
  const layers = [...new Set(kept.map(({ layer }) => layer))];
  const numberOf = (key: string) => (query.has(key) ? Number(query.get(key)) : undefined);
  const layer = layers.find((one) => one === numberOf("al")) ?? layers.at(-1);
  const ofLayer = kept.filter((one) => one.layer === layer);
  const head = (ofLayer.find((one) => one.head === numberOf("ah")) ?? ofLayer[0])?.head;
  const picture = useHead(id, layer, head);
  const figure = useMemo(
    () =>
      picture === undefined || typeof picture === "string"
        ? undefined
        : attentionHead({ ...picture, tokens: result.tokens.map(visible) }),
    [picture, result],
  );
  if (layer === undefined || head === undefined) return null;
  const told = kept.find((one) => one.layer === layer && one.head === head) as AttentionHead;
  return (
    <section aria-label="One head">
      <p class="row card">
        <Choice
          label="Attention of layer"
          value={layer}
          options={layers}
          onChange={(one) => chooseHead(one, head)}
        />
        <Choice
          label="head"
          value={head}
          options={ofLayer.map((one) => one.head)}
          onChange={(one) => chooseHead(layer, one)}
        />
        <span class="soft">{habits(told)}</span>
      </p>
      {typeof picture === "string" && <Problem sentence={picture} />}
      {figure !== undefined && <FigureView figure={figure} name={name} />}
    </section>
  );
}

/** What a head does on average, in words. */
function habits({ previous, first, own, induction }: AttentionHead): string {
  const shares = [
    ["the token before", previous],
    ["the first token", first],
    ["itself", own],
    ["the token behind an earlier occurrence", induction],
  ] as const;
  const read = shares.flatMap(([what, share]) =>
    share === null ? [] : [`${what} ${Math.round(share * 100)} %`],
  );
  return `On average a token reads of ${read.join(", of ")}.`;
}

/** A head's weights, why there are none, or nothing yet. */
function useHead(
  id: string,
  layer: number | undefined,
  head: number | undefined,
): HeadPicture | string | undefined {
  useTopic("state");
  const [found, set] = useState<{ path: string; picture: HeadPicture | string }>();
  const path = `/api/jobs/${encodeURIComponent(id)}/attention/${layer}/${head}`;
  const reachable = known.state?.lab.ok === true;
  useEffect(() => {
    if (layer === undefined || head === undefined) return;
    // Only what could not be read is read again when the Lab is back.
    if (found?.path === path && typeof found.picture !== "string") return;
    const ending = new AbortController();
    call<HeadPicture>(path, { signal: ending.signal }).then(
      (picture) => set({ path, picture }),
      (error: Error) => {
        if (!ending.signal.aborted) set({ path, picture: error.message });
      },
    );
    return () => ending.abort();
  }, [path, reachable]);
  return found?.picture;
}
