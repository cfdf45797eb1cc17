import Type, { type Static } from "typebox";
import { operations } from "../operations/contracts.js";
import { limits } from "./limits.js";
import { Name } from "./live.js";
import { quantisations } from "./names.js";
import { optional } from "./optional.js";

const closed = { additionalProperties: false };
const name = (description: string) => Type.String({ pattern: "^[a-z0-9][a-z0-9-]{0,63}$", description });
const words = (description: string, maxLength = 4000) =>
  Type.String({ minLength: 1, maxLength, description });

const range = {
  low: Type.Optional(Type.Number({ description: "The claim holds from here on." })),
  high: Type.Optional(Type.Number({ description: "The claim holds up to here." })),
  source: words("Where the range comes from: a table of the paper, a measurement here.", 500),
};

const Part = Type.String({ minLength: 1, maxLength: 200 });

/** Numbers that a step's result holds at a path. */
export const Reading = Type.Object(
  {
    step: name("The step whose result is read."),
    path: Type.String({
      maxLength: 300,
      description:
        "Parts between slashes: a field, an index (from the end when negative), `from:to` for the entries up to but not with `to`, `*` for all, `field=value` for the entries of that value, `field=value&other=value` for those of both; a text in quotes keeps its spaces.",
    }),
    take: optional.Enum(["mean", "min", "max"], { default: "mean", description: "One number of several." }),
    surprise: optional.Boolean({
      description: "Each number is a probability, and minus its natural logarithm is meant.",
    }),
    otherwise: optional.Number({
      description: "The value where nothing is at the path; without it, that is a failure.",
    }),
    contains: optional.Union([Part, Type.Array(Part, { minItems: 1, maxItems: 64 })], {
      description: "Texts count 1 where they contain this, or one of these, else 0.",
    }),
  },
  { ...closed, title: "Reading" },
);
export type Reading = Static<typeof Reading>;

const MeanOfReadings = Type.Object(
  { mean: Type.Array(Reading, { minItems: 1, maxItems: 32 }) },
  { ...closed, title: "MeanOfReadings" },
);
const ReadingOrMean = Type.Union([Reading, MeanOfReadings]);

/**
 * A reading, the mean of several steps' ones, one of these less another, or how often the values of two readings are the
 * same.
 */
export const Quantity = Type.Union([
  Reading,
  MeanOfReadings,
  Type.Object({ difference: Type.Tuple([ReadingOrMean, ReadingOrMean]) }, { ...closed, title: "Difference" }),
  Type.Object(
    {
      same: Type.Tuple([Reading, Reading], {
        description: "The share of places where both hold the same value; as many at one as at the other.",
      }),
    },
    { ...closed, title: "ShareTheSame" },
  ),
]);
export type Quantity = Static<typeof Quantity>;

export const Expected = Type.Object(
  {
    id: name("Its name within the recipe."),
    what: words("What is measured, as a table shows it.", 200),
    value: Quantity,
    ...range,
    control: optional.Boolean({ description: "It says what would also have happened without the effect." }),
  },
  { ...closed, title: "Expected" },
);
export type Expected = Static<typeof Expected>;

/** A model that the claim is checked on. */
export const RecipeModel = Type.Object(
  {
    id: Type.String({
      minLength: 1,
      maxLength: limits.model_characters,
      description: "As a submission names it: `demo`, or a hub id.",
    }),
    revision: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    bytes: Type.Optional(Type.Integer({ minimum: 0, description: "What has to be downloaded." })),
    variants: Type.Optional(
      Type.Record(
        Type.String({ pattern: "^[a-z0-9][a-z0-9_-]{0,31}$" }),
        Type.Object(
          {
            id: Type.String({ minLength: 1, maxLength: limits.model_characters }),
            revision: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
            bytes: Type.Optional(Type.Integer({ minimum: 0 })),
          },
          closed,
        ),
        { description: "Other forms of it, by the name that steps call them." },
      ),
    ),
    quantised: Type.Optional(
      Type.Record(Type.String({ pattern: "^[a-z0-9][a-z0-9_-]{0,31}$" }), Type.Enum([...quantisations]), {
        description:
          "Forms in fewer bits, by the name that steps call them: made for the run of the model's own file, whose weights " +
          "have 16 bits or more.",
      }),
    ),
    tested: Type.Boolean({ description: "Whether the expected figures were seen on it." }),
    layers: Type.Optional(
      Type.Record(Type.String(), Type.Array(Type.Integer({ minimum: 0 })), {
        description: "Layers of its own, by step.",
      }),
    ),
    expected: Type.Optional(
      Type.Record(Type.String(), Type.Object(range, closed), { description: "Ranges of its own, by id." }),
    ),
  },
  { ...closed, title: "RecipeModel" },
);
export type RecipeModel = Static<typeof RecipeModel>;

/** A vector in no particular direction, as long as another one at each of its layers. */
export const RandomVector = Type.Object(
  { name: Name, like: Name, seed: Type.Integer({ minimum: 0, maximum: limits.seed }) },
  { ...closed, title: "RandomVector" },
);
export type RandomVector = Static<typeof RandomVector>;

/** Requests of one step. */
const mostRequests = 64;

/** Requests to a serving model, one after another: a body, and what each of several has in place of its fields. */
export const LivePost = Type.Object(
  {
    post: Type.Enum(["/v1/chat/completions", "/v1/completions"]),
    body: Type.Object({}, { description: "The request's body, without `model` and `stream`." }),
    each: optional.Array(Type.Object({}), {
      minItems: 1,
      maxItems: mostRequests,
      description: "One request each: its fields take the place of the body's.",
    }),
  },
  { ...closed, title: "LivePost" },
);
export type LivePost = Static<typeof LivePost>;

const Group = Type.String({
  pattern: "^(-?\\d{1,3})?:(-?\\d{1,3})?$",
  description:
    "`from:to`: texts of the step from `from` up to but not with `to`, negative ones from the end.",
});

/** A feature that tells two groups of texts apart, or how well a known one does. */
export const Contrast = Type.Object(
  {
    step: name("An earlier step of the operation features, whose result is read."),
    texts: Group,
    against: Group,
    token: optional.Integer({
      minimum: -limits.token_index,
      maximum: limits.token_index,
      default: -1,
      description: "The token that is looked at in each text, negative from the end.",
    }),
    feature: optional.Union(
      [
        Type.Integer({ minimum: 0, maximum: limits.feature_index }),
        Type.Object({ picked: name("An earlier step that picked one.") }, closed),
      ],
      {
        description:
          "The feature. Without it one is picked: that whose mean activation in `texts` is the most above that in " +
          "`against`, of equals the one of the lower number.",
      },
    ),
  },
  { ...closed, title: "Contrast" },
);
export type Contrast = Static<typeof Contrast>;

/** What a live step does: one field says which. Each is checked by the schema of its own request. */
export const liveKinds = ["vector", "probe", "random", "post"] as const;

export const RecipeStep = Type.Object(
  {
    id: name("Its name within the recipe."),
    what: words("What the step is for.", 300),
    variant: optional.String({
      maxLength: 32,
      description: "The model's form that a request runs on; without it the model.",
    }),
    request: optional.Object(
      { operation: Type.Enum([...operations]) },
      {
        description:
          'The body of `POST /lab/v1/jobs`, without `model` and `revision`. `{"picked": STEP}` in it is the feature that an ' +
          'earlier contrast picked; `other` of drift is `{"variant": NAME}`.',
      },
    ),
    keep: Type.Optional({
      ...Name,
      description:
        "Of a request of sae or probe with one layer: what it trained is kept in the Lab's library under this name, as a " +
        "dictionary or a probe that later requests name, until the recipe ends.",
    }),
    contrast: Type.Optional(Contrast),
    live: optional.Object(
      {},
      {
        description:
          "In its place, what is asked of a serving model: `vector` or `probe`, the body of `POST /lab/vectors` or " +
          "`/lab/probes`; `random`, a vector as long as another; or `post`, requests to it.",
      },
    ),
  },
  { ...closed, title: "RecipeStep" },
);
export type RecipeStep = Static<typeof RecipeStep>;

/** `recipes/NAME/recipe.json`: a published claim, and everything that is needed to see whether it holds. */
export const Recipe = Type.Object(
  {
    schema_version: Type.Literal(1),
    title: words("What is reproduced.", 160),
    paper: Type.Object({ title: words("Title.", 300), url: words("Where it is.", 300) }, closed),
    claim: words("What the paper says."),
    differs: words("What is done otherwise here."),
    models: Type.Array(RecipeModel, { minItems: 1, maxItems: 16, description: "The first is the default." }),
    data: Type.Object(
      { what: words("The texts, and who made them."), licence: words("Their licence.", 100) },
      closed,
    ),
    texts: Type.Optional(
      Type.Record(
        Type.String({ pattern: "^[a-z0-9][a-z0-9-]{0,63}$" }),
        Type.Array(Type.String({ minLength: 1, maxLength: 4000 }), { minItems: 1, maxItems: 512 }),
        { description: 'Lists that requests name as `{"texts": NAME}`; whoever runs it may give others.' },
      ),
    ),
    steps: Type.Array(RecipeStep, { minItems: 1, maxItems: 32 }),
    expected: Type.Array(Expected, { minItems: 1, maxItems: 64 }),
  },
  { ...closed, title: "Recipe" },
);
export type Recipe = Static<typeof Recipe>;
