/** A process that asks for admission at random, now and then as told. Arguments: database, token's hash, seconds. */
import { admit } from "../../../../src/studies/store/admission.js";
import { openStore } from "../../../../src/studies/store/store.js";

const [location, hash, seconds] = process.argv.slice(2) as [string, string, string];
const store = await openStore(location, { migrate: false, connections: 4 });
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const end = Date.now() + Number(seconds) * 1000;
while (Date.now() < end) {
  const burst = 1 + Math.floor(Math.random() ** 4 * 40);
  const answers = await Promise.all(
    Array.from({ length: burst }, async () => {
      const sent = Date.now();
      const { outcome } = await admit(store, hash);
      return { outcome, sent, received: Date.now() };
    }),
  );
  process.send?.(answers);
  await pause(Math.random() ** 3 * 6000);
}
await store.close();
process.disconnect?.();
