/** What a kind of intervention works with beside its strength. */
export type Needs = "donor" | "direction" | "tokens";

export interface Intervention {
  /** What a row h becomes at strength s, with u the unit direction: for the API's description. */
  formula: string;
  /** The same as figures say it. */
  becomes: string;
  /** The strength at which nothing changes. */
  neutral: 0 | 1;
  /** A donor's state, a direction (of texts or a feature), or two tokens: what has one is tried with a random one, too. */
  needs?: Needs;
  /** It holds a projection within min and max, and its strength is a share of that correction: from 0 to 1. */
  bounded?: true;
  /** strength_unit says how long its direction is. */
  units?: true;
  /** It can change single heads (head_out). */
  heads?: true;
  /** Requests to the served model may have it. */
  live?: true;
  /** Its slider beside a conversation, if it has one; `of` names its unit, `first` is where it starts. */
  slider?: { min: number; max: number; first: number; of: string };
  /** What is done, as a noun: “What … does to”. */
  noun: string;
  /** What was done, as a sentence goes on with the block. */
  doing: string;
  /** What the block is, once it is done; with its donor, direction or tokens in words. */
  done: (what: string) => string;
}

/** Every kind of intervention, and all that is particular about it. */
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
    doing: "Patching the donor's state into",
    done: (donor) => `patched from ${donor}`,
  },
  steer: {
    formula: "steer h + s*u",
    becomes:
      "h becomes h + s·v, with v the difference of the positive and the negative side in the strength's unit",
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
    noun: "taking out a direction",
    doing: "Taking the component along the direction out of",
    done: (direction) => `without what leads ${direction}`,
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
    done: (direction) => `held within bounds on the way ${direction}`,
  },
  swap: {
    formula: "swap moves h to where two tokens' coordinates are exchanged",
    becomes:
      "h goes s of the way to where the two tokens' coordinates are exchanged, with the values of the run without a change",
    neutral: 0,
    needs: "tokens",
    noun: "exchanging two tokens' coordinates",
    doing: "Exchanging two tokens' coordinates in",
    done: (tokens) => `with ${tokens} exchanged`,
  },
} as const satisfies Record<string, Intervention>;

type Kinds = typeof interventionKinds;
export type InterventionKind = keyof Kinds;
/** Kinds that requests to the served model may have. */
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

/** The kinds of which something is so, in the table's order. */
export function kindsThat(test: (one: Intervention) => unknown): InterventionKind[] {
  return interventions.filter((kind) => test(interventionOf(kind)));
}

export const liveKinds = kindsThat(({ live }) => live) as LiveKind[];
export const sliderKinds = kindsThat(({ slider }) => slider) as SliderKind[];
