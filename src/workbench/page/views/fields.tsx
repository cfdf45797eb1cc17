import type { ComponentChildren, Ref } from "preact";
import { linesOf } from "../lists.js";

interface CheckProps {
  checked: boolean;
  onChange: (checked: boolean) => void;
  /** What it means, after the box. */
  children: ComponentChildren;
}

export function Check({ checked, onChange, children }: CheckProps) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      {children}
    </label>
  );
}

interface ChoiceProps<T> {
  label: ComponentChildren;
  value: T | undefined;
  /** Values, each with its words where these differ from it. */
  options: readonly (T | readonly [value: T, words: string])[];
  onChange: (value: T) => void;
}

/** One of several values. */
export function Choice<T extends string | number>({ label, value, options, onChange }: ChoiceProps<T>) {
  const all = options.map((one) => (typeof one === "object" ? one : ([one, String(one)] as const)));
  return (
    <label>
      {label}{" "}
      <select
        value={value}
        onChange={({ currentTarget }) => {
          const chosen = all[currentTarget.selectedIndex];
          if (chosen !== undefined) onChange(chosen[0]);
        }}
      >
        {all.map(([one, words]) => (
          <option key={one} value={one}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}

interface TextProps {
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
}

/** A short text after its label. */
export function Field({ label, onChange, ...input }: TextProps & { label: string; class?: string }) {
  return (
    <label>
      {label} <input {...input} onInput={(event) => onChange(event.currentTarget.value)} />
    </label>
  );
}

/** Block indices with commas between them, ranges with a hyphen. */
export function LayersField(props: TextProps) {
  return <Field label="layers" class="layers" placeholder="all" {...props} />;
}

interface NumberProps {
  label: string;
  value: number;
  min: number;
  max: number;
  /** Between two numbers that the arrows reach; without it only whole numbers are taken. */
  step?: number;
  onChange: (value: number) => void;
}

export function NumberField({ label, onChange, ...input }: NumberProps) {
  const isTaken = input.step === undefined ? Number.isInteger : Number.isFinite;
  return (
    <label>
      {label}{" "}
      <input
        type="number"
        {...input}
        onInput={({ currentTarget: { valueAsNumber } }) => isTaken(valueAsNumber) && onChange(valueAsNumber)}
      />
    </label>
  );
}

interface AreaProps extends TextProps {
  label: string;
  hint?: string;
  rows: number;
  class?: string;
  field?: Ref<HTMLTextAreaElement>;
}

/** A text of some lines below its label. */
export function Area({ label, hint, onChange, field, ...area }: AreaProps) {
  return (
    <label class="field">
      {label} {hint !== undefined && <span class="soft">{hint}</span>}
      <textarea {...area} ref={field ?? null} onInput={(event) => onChange(event.currentTarget.value)} />
    </label>
  );
}

/** A list of texts, one a line. */
export function TextsField({ rows = 6, ...props }: Omit<AreaProps, "rows"> & { rows?: number }) {
  const count = linesOf(props.value).length;
  return <Area rows={rows} hint={`${count === 1 ? "1 text" : `${count} texts`}, one a line`} {...props} />;
}
