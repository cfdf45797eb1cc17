import { linesOf } from "../lists.js";

/** A list of texts, one a line. */
export function TextsField({
  label,
  value,
  onChange,
  rows = 6,
}: {
  label: string;
  rows?: number;
  value: string;
  onChange: (value: string) => void;
}) {
  const count = linesOf(value).length;
  return (
    <label class="field">
      {label} <span class="soft">{count === 1 ? "1 text" : `${count} texts`}, one a line</span>
      <textarea rows={rows} value={value} onInput={(event) => onChange(event.currentTarget.value)} />
    </label>
  );
}
