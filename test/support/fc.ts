/**
 * fast-check with one seed for all: a run says the same thing today and tomorrow, here and there.
 * TAPLINE_TEST_SEED=<number> tries others.
 */
import fc from "fast-check";

export const seed = Number(process.env.TAPLINE_TEST_SEED ?? 1);
fc.configureGlobal({ seed });

export { fc };
