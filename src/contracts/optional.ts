import Type, {
  type TArrayOptions,
  type TLiteral,
  type TObjectOptions,
  type TProperties,
  type TSchema,
  type TSchemaOptions,
  type TString,
  type TUnion,
} from "typebox";

const optionalSchema = <S extends TSchema>(schema: S) => Type.Optional(schema);

/** An optional field: of a given schema, or built like `Type`'s. */
export const optional = Object.assign(optionalSchema, {
  Boolean: (options?: TSchemaOptions) => Type.Optional(Type.Boolean(options)),
  Integer: (...options: Parameters<typeof Type.Integer>) => Type.Optional(Type.Integer(...options)),
  Number: (...options: Parameters<typeof Type.Number>) => Type.Optional(Type.Number(...options)),
  String: (...options: Parameters<typeof Type.String>) => Type.Optional(Type.String(...options)),
  Enum: <V extends (string | number)[]>(values: readonly [...V], options?: TSchemaOptions) =>
    Type.Optional(Type.Enum(values, options)),
  Array: <S extends TSchema>(items: S, options?: TArrayOptions) => Type.Optional(Type.Array(items, options)),
  Object: <P extends TProperties>(properties: P, options?: TObjectOptions) =>
    Type.Optional(Type.Object(properties, options)),
  Record: <S extends TSchema>(key: TString, value: S, options?: TObjectOptions) =>
    Type.Optional(Type.Record(key, value, options)),
  Union: <S extends TSchema[]>(schemas: [...S], options?: TSchemaOptions) =>
    Type.Optional(Type.Union(schemas, options)),
});

/** A value of a schema, or null. */
export const orNull = <S extends TSchema>(schema: S, options?: TSchemaOptions) =>
  Type.Union([schema, Type.Null()], options);

/** One of some strings, as a union of literals. */
export const oneOf = <const V extends readonly string[]>(...values: V) =>
  Type.Union(values.map((value) => Type.Literal(value))) as unknown as TUnion<{
    -readonly [K in keyof V]: TLiteral<V[K]>;
  }>;
