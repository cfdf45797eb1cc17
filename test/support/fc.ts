/**
 * fast-check with one seed for all: a run says the same thing today and tomorrow, here and there.
 * TAPLINE_TEST_SEED=<number> tries others.
 */
import fc from "fast-check";

export const seed = Number(process.env.TAPLINE_TEST_SEED ?? 1);
fc.configureGlobal({ seed });

/**
 * Any character of Unicode. What fast-check calls the unit "binary" is the same, but makes a table of all 1.1 million
 * first, which takes most of a second in every process.
 */
export const character = fc
  .integer({ min: 0, max: 0x10ffff - 0x800 })
  .map((at) => String.fromCodePoint(at < 0xd800 ? at : at + 0x800));

export { fc };
