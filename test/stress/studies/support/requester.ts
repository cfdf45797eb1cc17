/**
 * A process that asks for admission at random, now and then as told. Arguments: database, token's hash, seconds of the
 * database's clock, since when that goes how many times as fast.
 */
import { admit } from "../../../../src/studies/store/admission.js";
import { openStore } from "../../../../src/studies/store/open.js";
import { hurriedClock } from "../../../studies/support/clock.js";

const [location = "", hash = "", ...numbers] = process.argv.slice(2);
const [seconds, since, times] = numbers.map(Number) as [number, number, number];
const dialect = hurriedClock(location, since, times);
const store = await openStore(location, { migrate: false, connections: 4, dialect });
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const end = Date.now() + (seconds * 1000) / times;
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
  await pause((Math.random() ** 3 * 12_000) / times);
}
await store.close();
process.disconnect?.();
