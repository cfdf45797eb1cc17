import Type, { type Static } from "typebox";
import { limits } from "./limits.js";
import { operations } from "./submission.js";

const closed = { additionalProperties: false };
const name = (description: string) => Type.String({ pattern: "^[a-z0-9][a-z0-9-]{0,63}$", description });
const words = (description: string, maxLength = 4000) =>
  Type.String({ minLength: 1, maxLength, description });

const range = {
  low: Type.Optional(Type.Number({ description: "The claim holds from here on." })),
  high: Type.Optional(Type.Number({ description: "The claim holds up to here." })),
  source: words("Where the range comes from: a table of the paper, a measurement here.", 500),
};

/** Numbers that a step's result holds at a path. */
export const Reading = Type.Object(
  {
    step: name("The step whose result is read."),
    path: Type.String({
      maxLength: 300,
      description:
        "Parts between slashes: a field, an index (from the end when negative), `*` for all, `field=value` for the entries of that value; a text in quotes keeps its spaces.",
    }),
    take: Type.Optional(
      Type.Enum(["mean", "min", "max"], { default: "mean", description: "One number of several." }),
    ),
    otherwise: Type.Optional(
      Type.Number({ description: "The value where nothing is at the path; without it, that is a failure." }),
    ),
    contains: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description: "Texts count 1 where they contain this, else 0.",
      }),
    ),
  },
  { ...closed, title: "Reading" },
);
export type Reading = Static<typeof Reading>;

/** A reading, one less another, or the mean of several steps' ones. */
export const Quantity = Type.Union([
  Reading,
  Type.Object({ difference: Type.Tuple([Reading, Reading]) }, { ...closed, title: "Difference" }),
  Type.Object(
    { mean: Type.Array(Reading, { minItems: 1, maxItems: 32 }) },
    { ...closed, title: "MeanOfReadings" },
  ),
]);
export type Quantity = Static<typeof Quantity>;

export const Expected = Type.Object(
  {
    id: name("Its name within the recipe."),
    what: words("What is measured, as a table shows it.", 200),
    value: Quantity,
    ...range,
    control: Type.Optional(
      Type.Boolean({ description: "It says what would also have happened without the effect." }),
    ),
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

export const RecipeStep = Type.Object(
  {
    id: name("Its name within the recipe."),
    what: words("What the step is for.", 300),
    request: Type.Object(
      { operation: Type.Enum([...operations]) },
      { description: "The body of `POST /lab/v1/jobs`, without `model` and `revision`." },
    ),
  },
  { ...closed, title: "RecipeStep" },
);

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
    steps: Type.Array(RecipeStep, { minItems: 1, maxItems: 32 }),
    expected: Type.Array(Expected, { minItems: 1, maxItems: 64 }),
  },
  { ...closed, title: "Recipe" },
);
export type Recipe = Static<typeof Recipe>;
