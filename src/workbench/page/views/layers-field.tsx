/** Block indices with commas between them, ranges with a hyphen. */
export function LayersField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  return (
    <label>
      layers{" "}
      <input
        class="layers"
        value={value}
        placeholder="all"
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    </label>
  );
}

/** @returns the blocks that a text names, as `0, 3, 5-7`; undefined for none @throws Error */
export function parseLayers(text: string): number[] | undefined {
  const parts = text
    .split(/[\s,]+/)
    .filter((part) => part !== "")
    .flatMap((part) => {
      const [, first, last = first] = /^(\d{1,3})(?:-(\d{1,3}))?$/.exec(part) ?? [];
      if (first === undefined) throw new Error(`Layers are numbers and ranges as 0, 3, 5-7; got ${part}.`);
      const [from, to] = [Number(first), Number(last)];
      return Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => from + at);
    });
  return parts.length === 0 ? undefined : [...new Set(parts)];
}
