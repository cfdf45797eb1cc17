/**
 * Lets Node run TypeScript, as `--import tsx` does, for a third of its part in a test's start: what files compile to is
 * kept. `node --import ./test/support/typescript.js FILE`
 */
import { register } from "node:module";

process.setSourceMapsEnabled(true);
register("./typescript-hooks.js", import.meta.url);
