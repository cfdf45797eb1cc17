/** Block indices with commas between them, ranges with a hyphen. */
export function LayersField({
  value,
  onChange,
  placeholder = "all",
}: {
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
}) {
  return (
    <label>
      layers{" "}
      <input
        class="layers"
        value={value}
        placeholder={placeholder}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    </label>
  );
}
