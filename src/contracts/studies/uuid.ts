/**
 * The contract's UUID rule: version digit 1-8 with variant digit 8, 9, a or b, in either case; and the all-zero and
 * all-f UUIDs. It is narrower than `format: uuid`, hence a pattern.
 */
export const uuidPattern =
  "^(?:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}" +
  "|00000000-0000-0000-0000-000000000000|[fF]{8}-[fF]{4}-[fF]{4}-[fF]{4}-[fF]{12})$";
