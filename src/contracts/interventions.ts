/** The operand of a kind of intervention, besides its strength. */
export type Needs = "donor" | "direction" | "tokens";

export interface Intervention {
  /** What an activation h becomes at strength s, with u the unit direction; shown in the API description. */
  formula: string;
  /** The same formula, as figures show it. */
  becomes: string;
  /** The strength at which nothing changes. */
  neutral: 0 | 1;
  /** A donor's state, a direction (of texts or a feature), or two tokens: each is also run with a random control. */
  needs?: Needs;
  /** Clips a projection to min and max; the strength is the share of the correction, from 0 to 1. */
  bounded?: true;
  /** Whether strength_unit applies: the length of its direction. */
  units?: true;
  /** Whether it can edit single heads (head_out). */
  heads?: true;
  /** Whether requests to the served model may use it. */
  live?: true;
  /** Its slider in the workbench, if any; `of` names the unit, `first` is the initial value. */
  slider?: { min: number; max: number; first: number; of: string };
  /** The intervention as a noun. */
  noun: string;
  /** The intervention as a gerund, followed by the block. */
  doing: string;
  /** A participle for the edited block; gets the donor, direction or tokens in words. */
  done: (what: string) => string;
}

/** Every kind of intervention and its properties. */
export const interventionKinds = {
  scale: {
    formula: "scale s*h",
    becomes: "h becomes s·h",
    neutral: 1,
    heads: true,
    live: true,
    slider: { min: 0, max: 3, first: 1.5, of: "× activation" },
    noun: "scaling",
    doing: "Scaling the output of",
    done: () => "scaled",
  },
  ablate: {
    formula: "ablate (1-s)*h",
    becomes: "h becomes (1 − s)·h",
    neutral: 0,
    heads: true,
    live: true,
    slider: { min: 0, max: 1, first: 0.8, of: "of the activation removed" },
    noun: "ablation",
    doing: "Ablating the output of",
    done: () => "ablated",
  },
  patch: {
    formula: "patch (1-s)*h + s*donor",
    becomes: "h becomes (1 − s)·h + s·donor",
    neutral: 0,
    needs: "donor",
    heads: true,
    live: true,
    noun: "patching",
    doing: "Patching the donor's activation into",
    done: (donor) => `patched from ${donor}`,
  },
  steer: {
    formula: "steer h + s*u",
    becomes:
      "h becomes h + s·v, with v the difference between the positive and the negative side, in the strength's unit",
    neutral: 0,
    needs: "direction",
    units: true,
    live: true,
    slider: { min: -1, max: 1, first: 0.3, of: "× activation norm" },
    noun: "steering",
    doing: "Adding the steering direction to",
    done: (direction) => `steered ${direction}`,
  },
  project_out: {
    formula: "project_out h - s*(h.u)u",
    becomes: "h becomes h − s·(h·u)·u, with u the unit difference of the positive and the negative side",
    neutral: 0,
    needs: "direction",
    live: true,
    slider: { min: 0, max: 1, first: 1, of: "of the component removed" },
    noun: "projecting out a direction",
    doing: "Projecting the direction out of",
    done: (direction) => `without its component ${direction}`,
  },
  clamp: {
    formula:
      "clamp h + s*(clip(h.u, min, max) - h.u)u, or with a feature of activation f and decoder row d " +
      "h + s*(clip(f, min, max) - f)d",
    becomes: "h becomes h + s·(clip(h·u, min, max) − h·u)·u, with u the unit difference of the two sides",
    neutral: 0,
    needs: "direction",
    bounded: true,
    units: true,
    live: true,
    noun: "clamping a projection",
    doing: "Clamping the projection on the direction in",
    done: (direction) => `with its projection ${direction} clamped`,
  },
  swap: {
    formula: "swap moves h to the point where two tokens' coordinates are exchanged",
    becomes:
      "h moves a share s of the way to the point where the two tokens' coordinates are exchanged, with coordinates from the unmodified run",
    neutral: 0,
    needs: "tokens",
    noun: "exchanging two tokens' coordinates",
    doing: "Exchanging two tokens' coordinates in",
    done: (tokens) => `with ${tokens} exchanged`,
  },
} as const satisfies Record<string, Intervention>;

type Kinds = typeof interventionKinds;
export type InterventionKind = keyof Kinds;
/** Kinds that requests to the served model may use. */
export type LiveKind = {
  [K in InterventionKind]: Kinds[K] extends { live: true } ? K : never;
}[InterventionKind];
/** Kinds that have a slider. */
export type SliderKind = {
  [K in InterventionKind]: Kinds[K] extends { slider: object } ? K : never;
}[InterventionKind];

export const interventions = Object.keys(interventionKinds) as InterventionKind[];

export function interventionOf(kind: InterventionKind): Intervention {
  return interventionKinds[kind];
}

/** The kinds that pass a test, in the table's order. */
export function kindsThat(test: (one: Intervention) => unknown): InterventionKind[] {
  return interventions.filter((kind) => test(interventionOf(kind)));
}

export const liveKinds = kindsThat(({ live }) => live) as LiveKind[];
export const sliderKinds = kindsThat(({ slider }) => slider) as SliderKind[];
