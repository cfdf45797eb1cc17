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
  low: optional.Number({ description: "Lower bound within which the claim holds." }),
  high: optional.Number({ description: "Upper bound within which the claim holds." }),
  source: words("Where the range comes from: a table of the paper, or a measurement made here.", 500),
};

const Part = Type.String({ minLength: 1, maxLength: 200 });

/** Numbers at a path of a step's result. */
export const Reading = Type.Object(
  {
    step: name("The step whose result is read."),
    path: Type.String({
      maxLength: 300,
      description:
        "Parts separated by slashes: a field, an index (negative from the end), `from:to` for the entries up to but not including `to`, `*` for all, `field=value` for the entries with that value, `field=value&other=value` for those with both; quoted text keeps its spaces.",
    }),
    take: optional.Enum(["mean", "min", "max"], {
      default: "mean",
      description: "How to reduce several numbers to one.",
    }),
    surprise: optional.Boolean({
      description: "Use the negative natural logarithm of each number, which is a probability.",
    }),
    otherwise: optional.Number({
      description: "Value to use if the path matches nothing; without it, that is a failure.",
    }),
    contains: optional.Union([Part, Type.Array(Part, { minItems: 1, maxItems: 64 })], {
      description: "Texts count 1 if they contain this, or one of these, else 0.",
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

/** A reading, the mean of several readings, the difference of two of these, or how often two readings agree. */
export const Quantity = Type.Union([
  Reading,
  MeanOfReadings,
  Type.Object({ difference: Type.Tuple([ReadingOrMean, ReadingOrMean]) }, { ...closed, title: "Difference" }),
  Type.Object(
    {
      same: Type.Tuple([Reading, Reading], {
        description:
          "The share of positions at which both have the same value; both must have the same number of values.",
      }),
    },
    { ...closed, title: "ShareTheSame" },
  ),
]);
export type Quantity = Static<typeof Quantity>;

export const Expected = Type.Object(
  {
    id: name("Its id within the recipe."),
    what: words("The measured quantity, as shown in a table.", 200),
    value: Quantity,
    ...range,
    control: optional.Boolean({
      description: "Whether this is a control: it shows what also happens without the effect.",
    }),
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
      description: "The model, as in a submission: `demo`, or a hub id.",
    }),
    revision: optional.String({ minLength: 1, maxLength: 255 }),
    bytes: optional.Integer({ minimum: 0, description: "Download size." }),
    variants: optional.Record(
      Type.String({ pattern: "^[a-z0-9][a-z0-9_-]{0,31}$" }),
      Type.Object(
        {
          id: Type.String({ minLength: 1, maxLength: limits.model_characters }),
          revision: optional.String({ minLength: 1, maxLength: 255 }),
          bytes: optional.Integer({ minimum: 0 }),
        },
        closed,
      ),
      { description: "Other variants of the model, by the name that steps use." },
    ),
    quantised: optional.Record(
      Type.String({ pattern: "^[a-z0-9][a-z0-9_-]{0,31}$" }),
      Type.Enum([...quantisations]),
      {
        description:
          "Quantizations, by the name that steps use. They are made for the run from the model's own file, whose weights have 16 bits or more.",
      },
    ),
    tested: Type.Boolean({ description: "Whether the expected figures were measured on this model." }),
    layers: optional.Record(Type.String(), Type.Array(Type.Integer({ minimum: 0 })), {
      description: "Layers for this model, by step.",
    }),
    expected: optional.Record(Type.String(), Type.Object(range, closed), {
      description: "Ranges for this model, by id.",
    }),
  },
  { ...closed, title: "RecipeModel" },
);
export type RecipeModel = Static<typeof RecipeModel>;

/** A random vector with the norm of another one at each of its layers. */
export const RandomVector = Type.Object(
  { name: Name, like: Name, seed: Type.Integer({ minimum: 0, maximum: limits.seed }) },
  { ...closed, title: "RandomVector" },
);
export type RandomVector = Static<typeof RandomVector>;

/** Maximum requests per step. */
const mostRequests = 64;

/** Consecutive requests to a serving model: a body, and fields that replace the body's in each request. */
export const LivePost = Type.Object(
  {
    post: Type.Enum(["/v1/chat/completions", "/v1/completions"]),
    body: Type.Object({}, { description: "The request's body, without `model` and `stream`." }),
    each: optional.Array(Type.Object({}), {
      minItems: 1,
      maxItems: mostRequests,
      description: "One request per entry; its fields replace the body's.",
    }),
  },
  { ...closed, title: "LivePost" },
);
export type LivePost = Static<typeof LivePost>;

const Group = Type.String({
  pattern: "^(-?\\d{1,3})?:(-?\\d{1,3})?$",
  description:
    "`from:to`: texts of the step from `from` up to but not including `to`; negative from the end.",
});

/** A feature that distinguishes two groups of texts, or how well a known feature does. */
export const Contrast = Type.Object(
  {
    step: name("An earlier step of the operation `features` whose result is read."),
    texts: Group,
    against: Group,
    token: optional.Integer({
      minimum: -limits.token_index,
      maximum: limits.token_index,
      default: -1,
      description: "Index of the token to compare in each text; negative from the end.",
    }),
    feature: optional.Union(
      [
        Type.Integer({ minimum: 0, maximum: limits.feature_index }),
        Type.Object({ picked: name("An earlier step that picked one.") }, closed),
      ],
      {
        description:
          "The feature. By default, the one whose mean activation in `texts` exceeds that in `against` by the most; of equals, the lowest index.",
      },
    ),
  },
  { ...closed, title: "Contrast" },
);
export type Contrast = Static<typeof Contrast>;

/** Texts, or a list of the recipe by name. */
const TextsOfRecipe = (description: string) =>
  Type.Union(
    [
      Type.Array(Type.String({ minLength: 1, maxLength: 4000 }), { maxItems: 512 }),
      Type.Object({ texts: name("One of `texts`.") }, closed),
    ],
    { description },
  );

/** What quantized and rounded forms of the recipe's model change, as `tapline quants` measures it. */
export const RecipeQuants = Type.Object(
  {
    make: optional.Array(Type.Enum([...quantisations]), {
      uniqueItems: true,
      description: "Forms that llama-quantize makes of the model.",
    }),
    round: optional.Array(
      Type.Object(
        {
          bits: optional.Integer({ minimum: 2, maximum: 8, description: "Bits per weight." }),
          group: optional.Integer({
            minimum: 8,
            maximum: 65536,
            description: "Weights with a common scale; by default a row.",
          }),
          format: optional.Enum(["nf4"], {
            description: "Instead of `bits`: 4-bit NormalFloat of the linear layers.",
          }),
        },
        closed,
      ),
      {
        description:
          "Forms whose matrices are rounded to the nearest of evenly spaced values, or to a format.",
      },
    ),
    texts: TextsOfRecipe("Held-out texts, at least two."),
    layers: Type.Array(Type.Integer({ minimum: 0 }), { minItems: 1, maxItems: 8 }),
    dictionary: Type.Optional({ ...Name, description: "Saved by an earlier step." }),
    control: Type.Optional({ ...Name, description: "A second one, to compare with." }),
    prompts: Type.Optional(TextsOfRecipe("Prompts whose attribution graphs are compared.")),
  },
  { ...closed, title: "RecipeQuants" },
);
export type RecipeQuants = Static<typeof RecipeQuants>;

/** A saved dictionary, or a set of transcoders, that a recipe uses and does not train. */
export const RecipeDictionary = Type.Object(
  {
    what: words("What it is, and where it comes from.", 500),
    from: optional.String({
      minLength: 1,
      maxLength: limits.model_characters,
      description: "Its place on the hub, owner/name/folder; without one, the caller names a place.",
    }),
    random: Type.Optional(
      Type.Object(
        {
          like: name("Another of these dictionaries."),
          k: Type.Integer({
            minimum: 1,
            maximum: limits.feature_index,
            description: "Active features per token.",
          }),
          seed: Type.Integer({ minimum: 0, maximum: limits.seed }),
        },
        {
          ...closed,
          description:
            "A control: transcoders whose encoder and decoder rows have the norms of another's and random directions. The bias and " +
            "the skip term are the other's.",
        },
      ),
    ),
  },
  { ...closed, title: "RecipeDictionary" },
);
export type RecipeDictionary = Static<typeof RecipeDictionary>;

/** Kinds of live steps, one field each. Each is validated by the schema of its request. */
export const liveKinds = ["vector", "probe", "random", "post"] as const;

export const RecipeStep = Type.Object(
  {
    id: name("Its id within the recipe."),
    what: words("Purpose of the step.", 300),
    variant: optional.String({
      maxLength: 32,
      description: "The variant that a request runs on; by default the model itself.",
    }),
    request: optional.Object(
      { operation: Type.Enum([...operations]) },
      {
        description:
          'The body of `POST /lab/v1/jobs`, without `model` and `revision`. `{"picked": STEP}` in it is the feature picked by an earlier contrast; `other` of drift is `{"variant": NAME}`.',
      },
    ),
    keep: Type.Optional({
      ...Name,
      description:
        "For a request of sae or probe with one layer: saves the trained dictionary or probe in the Lab's library under this name until the recipe ends, so that later requests can use it. The dictionaries of an sae request with several layers are saved as a set, NAME-LAYER.",
    }),
    contrast: Type.Optional(Contrast),
    quants: Type.Optional(RecipeQuants),
    live: optional.Object(
      {},
      {
        description:
          "Alternatively, a request to a serving model: `vector` or `probe`, the body of `POST /lab/vectors` or " +
          "`/lab/probes`; `random`, a random vector with the norm of another; or `post`, requests to it.",
      },
    ),
  },
  { ...closed, title: "RecipeStep" },
);
export type RecipeStep = Static<typeof RecipeStep>;

/** `recipes/NAME/recipe.json`: a published claim and everything needed to check it. */
export const Recipe = Type.Object(
  {
    schema_version: Type.Literal(1),
    title: words("The result that is reproduced.", 160),
    paper: Type.Object({ title: words("Title.", 300), url: words("Its address.", 300) }, closed),
    claim: words("The paper's claim."),
    differs: words("How this recipe differs from the paper."),
    models: Type.Array(RecipeModel, { minItems: 1, maxItems: 16, description: "The first is the default." }),
    data: Type.Object(
      { what: words("The texts and their authors."), licence: words("Their licence.", 100) },
      closed,
    ),
    texts: optional.Record(
      Type.String({ pattern: "^[a-z0-9][a-z0-9-]{0,63}$" }),
      Type.Array(Type.String({ minLength: 1, maxLength: 4000 }), { minItems: 1, maxItems: 512 }),
      {
        description:
          'Lists that requests refer to as `{"texts": NAME}`; the caller may supply others. In a file, a list may be the ' +
          "relative path of another one, with a text per line.",
      },
    ),
    dictionaries: optional.Record(Type.String({ pattern: "^[a-z0-9][a-z0-9-]{0,31}$" }), RecipeDictionary, {
      description:
        "Dictionaries and sets of transcoders that requests name and that no step trains. They are in the Lab's library until the " +
        "recipe ends.",
    }),
    steps: Type.Array(RecipeStep, { minItems: 1, maxItems: 32 }),
    expected: Type.Array(Expected, { minItems: 1, maxItems: 64 }),
  },
  { ...closed, title: "Recipe" },
);
export type Recipe = Static<typeof Recipe>;
