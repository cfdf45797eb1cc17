import { useEffect, useState } from "preact/hooks";
import type { PatchSweepResult } from "../../../contracts/index.js";
import { count } from "../../../findings/numbers.js";
import { patchTokens } from "../../../findings/patch-sweep.js";
import { visible } from "../../../text/visible.js";
import type { TextTokens } from "../../wire.js";
import { type PatchForm, spansOf } from "../patch-request.js";
import { post } from "../session.js";
import { known } from "../store.js";
import { HtmlPicture } from "./picture.js";

/** The tokens of texts, requested after a pause in typing; undefined until then. */
export function useTokens(texts: string[]): TextTokens[] | undefined {
  const [found, set] = useState<{ key: string; tokens: TextTokens[] }>();
  const key = JSON.stringify(texts);
  const wanted =
    known.state?.server.ok === true && texts.length > 0 && texts.every((text) => text.trim() !== "");
  useEffect(() => {
    if (!wanted) return;
    let over = false;
    const timer = setTimeout(() => {
      post<{ tokens: TextTokens[] }>("/api/tokens", { texts }).then(
        ({ tokens }) => !over && set({ key, tokens }),
        () => {},
      );
    }, 250);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [key, wanted]);
  return found?.key === key ? found.tokens : undefined;
}

/** The tokens of both texts side by side, before a run. */
export function Preview({ tokens: [clean = [], corrupted = []] }: { tokens: TextTokens[] }) {
  const rows = Array.from({ length: Math.max(clean.length, corrupted.length) }, (_, position) => ({
    position,
    clean: clean[position]?.text,
    corrupted: corrupted[position]?.text,
  }));
  const differ = rows.filter((row) => row.clean !== row.corrupted).length;
  return (
    <section aria-label="Tokens">
      <Columns rows={rows} missing="none" />
      <p class={clean.length === corrupted.length ? "soft" : "problem"} role="status">
        {clean.length === corrupted.length
          ? `${count(clean.length, "token")} each; ${differ === 1 ? "1 differs" : `${differ} differ`}.`
          : `The clean text has ${clean.length} tokens, the corrupted one ${corrupted.length}. The prompts must have the same number of tokens.`}
      </p>
    </section>
  );
}

/** The marked spans, each above the matching span, or an error message. */
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
      <Columns rows={rows} missing="none" />
      <p class="soft" role="status">
        {count(rows.length, "span")}; each span's last-token state is patched into the matching span.
      </p>
    </section>
  );
}

/** The alignment of the tokens. */
export function Alignment({ result }: { result: PatchSweepResult }) {
  const tokens = patchTokens(result);
  const [pair] = result.pairs;
  return (
    <section class="card" aria-label="Alignment">
      {pair !== undefined && (
        <p>
          Measured: <bdi class="token">{visible(pair.target_token)}</bdi> versus{" "}
          <bdi class="token">{visible(pair.foil_token)}</bdi>
        </p>
      )}
      <Columns rows={tokens} missing="…" />
    </section>
  );
}

/** The tokens of two texts, one row per text. */
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
