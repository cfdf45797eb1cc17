/** One measured number and what it has to keep to. A NaN never does. */
export interface Figure {
  what: string;
  value: number;
  bound: number;
  /** The bound is a lower one. */
  atLeast?: boolean;
}

/** What a `*.check.ts` file in this folder exports as its default. */
export interface NumericCheck {
  title: string;
  /** Python modules that the check imports; their Debian packages are listed in python.ts. */
  modules: readonly string[];
  /** @param folder a scratch folder that is removed afterwards */
  run(python: string, folder: string): Promise<Figure[]>;
}
