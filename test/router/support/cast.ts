import { startFake } from "./fake.js";
import { startRouting } from "./routing.js";

/** Fake backends and routers of one test file; `endAll` ends those of the test that is over, routers first. */
export function cast() {
  const ended: (() => Promise<unknown>)[] = [];
  return {
    async fake(...options: Parameters<typeof startFake>) {
      const one = await startFake(...options);
      ended.push(one.close);
      return one;
    },
    async routing(...options: Parameters<typeof startRouting>) {
      const one = await startRouting(...options);
      ended.unshift(one.close);
      return one;
    },
    /** Something else that a test opened. */
    atEnd(end: () => Promise<unknown>) {
      ended.push(end);
    },
    async endAll() {
      for (const end of ended.splice(0)) await end();
    },
  };
}
