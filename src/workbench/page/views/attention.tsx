import { useEffect, useMemo, useState } from "preact/hooks";
import type { AttentionHead, InspectResult } from "../../../contracts/index.js";
import { attentionHead } from "../../../operations/inspect/figures-attention-head.js";
import { visible } from "../../../text/visible.js";
import type { HeadPicture } from "../../wire.js";
import { numberIn } from "../lists.js";
import { select, usePlace } from "../router.js";
import { call } from "../session.js";
import { known, useTopic } from "../store.js";
import { Choice } from "./fields.js";
import { FigureView } from "./figure.js";
import { Problem } from "./form.js";

/** Puts the selected head into the address. */
export function chooseHead(layer: number, head: number): void {
  select({ al: layer, ah: head });
}

/** One attention head of a job's result, selected by layer and head, as a map of tokens over tokens. */
export function Attention({ id, name, result }: { id: string; name: string; result: InspectResult }) {
  const { query } = usePlace();
  const heads = result.attention ?? [];
  const layers = [...new Set(heads.map(({ layer }) => layer))];
  const layer = layers.find((one) => one === numberIn(query, "al")) ?? layers.at(-1);
  const ofLayer = heads.filter((one) => one.layer === layer);
  const shown = ofLayer.find((one) => one.head === numberIn(query, "ah")) ?? ofLayer[0];
  const head = shown?.head;
  const picture = useHead(id, layer, head);
  const figure = useMemo(
    () =>
      picture === undefined || typeof picture === "string"
        ? undefined
        : attentionHead({ ...picture, tokens: result.tokens.map(visible) }),
    [picture, result],
  );
  if (layer === undefined || shown === undefined || head === undefined) return null;
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
          label="Head"
          value={head}
          options={ofLayer.map((one) => one.head)}
          onChange={(one) => chooseHead(layer, one)}
        />
        <span class="soft">{habits(shown)}</span>
      </p>
      {typeof picture === "string" && <Problem sentence={picture} />}
      {figure !== undefined && <FigureView figure={figure} name={name} />}
    </section>
  );
}

/** What a head attends to on average. */
function habits({ previous, first, own, induction }: AttentionHead): string {
  const shares = [
    ["the previous token", previous],
    ["the first token", first],
    ["itself", own],
    ["the token after an earlier occurrence", induction],
  ] as const;
  const read = shares.flatMap(([what, share]) =>
    share === null ? [] : [`${what} ${Math.round(share * 100)} %`],
  );
  return `Mean attention weight: ${read.join(", ")}.`;
}

/** A head's weights, an error message, or undefined while loading. */
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
    // Once the Lab is back, only retry after an error.
    if (found?.path === path && typeof found.picture !== "string") return;
    const abort = new AbortController();
    call<HeadPicture>(path, { signal: abort.signal }).then(
      (picture) => set({ path, picture }),
      (error: Error) => {
        if (!abort.signal.aborted) set({ path, picture: error.message });
      },
    );
    return () => abort.abort();
  }, [path, reachable]);
  return found?.picture;
}
