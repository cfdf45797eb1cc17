/** A list of texts, one a line. */
export function TextsField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
}) {
  const count = linesOf(value).length;
  return (
    <label class="field">
      {label} <span class="soft">{count === 1 ? "1 text" : `${count} texts`}, one a line</span>
      <textarea rows={6} value={value} onInput={(event) => onChange(event.currentTarget.value)} />
    </label>
  );
}

export function linesOf(text: string): string[] {
  return text.split(/\r?\n/).filter((line) => line.trim() !== "");
}
