import { useEffect, useState } from "preact/hooks";
import type { PatchSweepResult } from "../../../contracts/index.js";
import { patchTokens } from "../../../findings/patch-sweep.js";
import { visible } from "../../../findings/text.js";
import type { TextTokens } from "../../wire.js";
import { type PatchForm, spansOf } from "../patch-request.js";
import { post } from "../session.js";
import { known } from "../store.js";
import { HtmlPicture } from "./picture.js";

/** The tokens of texts, once nobody has typed for a moment; undefined until they are known. */
export function useTokens(texts: string[]): TextTokens[] | undefined {
  const [found, set] = useState<{ key: string; tokens: TextTokens[] }>();
  const key = JSON.stringify(texts);
  const wanted =
    known.state?.server.ok === true && texts.length > 0 && texts.every((text) => text.trim() !== "");
  useEffect(() => {
    if (!wanted) return;
    let ended = false;
    const timer = setTimeout(() => {
      post<{ tokens: TextTokens[] }>("/api/tokens", { texts }).then(
        ({ tokens }) => !ended && set({ key, tokens }),
        () => {},
      );
    }, 250);
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }, [key, wanted]);
  return found?.key === key ? found.tokens : undefined;
}

/** How the two texts stand against each other, before anything runs. */
export function Preview({ tokens: [clean = [], corrupted = []] }: { tokens: TextTokens[] }) {
  const rows = Array.from({ length: Math.max(clean.length, corrupted.length) }, (_, position) => ({
    position,
    clean: clean[position]?.text,
    corrupted: corrupted[position]?.text,
  }));
  const differ = rows.filter((row) => row.clean !== row.corrupted).length;
  return (
    <section aria-label="Tokens">
      <Columns rows={rows} missing="nothing" />
      <p class={clean.length === corrupted.length ? "soft" : "problem"} role="status">
        {clean.length === corrupted.length
          ? `${clean.length} tokens in both; ${differ === 1 ? "1 differs" : `${differ} differ`}.`
          : `The clean text has ${clean.length} tokens and the corrupted one ${corrupted.length}; a patch needs as many in both.`}
      </p>
    </section>
  );
}

/** The marked spans, each above its like, or what is wrong with the marks. */
export function Spans({ form }: { form: PatchForm }) {
  let rows: ReturnType<typeof spansOf>;
  try {
    rows = spansOf(form);
  } catch (error) {
    return (
      <p class="problem" role="status">
        {(error as Error).message}
      </p>
    );
  }
  return (
    <section aria-label="Spans">
      <Columns rows={rows} missing="nothing" />
      <p class="soft" role="status">
        {rows.length === 1 ? "1 span" : `${rows.length} spans`}; the state of each one's last token is put
        into its like.
      </p>
    </section>
  );
}

/** Which token stands against which. */
export function Alignment({ result }: { result: PatchSweepResult }) {
  const tokens = patchTokens(result);
  const [pair] = result.pairs;
  return (
    <section class="card" aria-label="Alignment">
      {pair !== undefined && (
        <p>
          Asked for: <bdi class="token">{visible(pair.target_token)}</bdi> against{" "}
          <bdi class="token">{visible(pair.foil_token)}</bdi>
        </p>
      )}
      <Columns rows={tokens} missing="…" />
    </section>
  );
}

/** Tokens of two texts, one below the other. */
function Columns({
  rows,
  missing,
}: {
  rows: { position: number; clean?: string | undefined; corrupted?: string | undefined }[];
  missing: string;
}) {
  const numbers = () => ({
    head: ["position", "clean", "corrupted"],
    rows: rows.map(({ position, clean, corrupted }) => [position, clean ?? null, corrupted ?? null]),
  });
  return (
    <HtmlPicture title="Tokens of both prompts" name="tapline-patch-tokens" numbers={numbers}>
      <ol class="plain aligned">
        {rows.map(({ position, clean, corrupted }) => (
          <li key={position} class={clean === corrupted ? "" : "differs"}>
            <bdi class="token">{clean === undefined ? missing : visible(clean)}</bdi>
            <bdi class="token">{corrupted === undefined ? missing : visible(corrupted)}</bdi>
          </li>
        ))}
      </ol>
    </HtmlPicture>
  );
}
