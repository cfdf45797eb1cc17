/** Which studies stand where, and which of them are in all of several sets: against plain lists. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type PlaceSet, Places } from "../../src/studies/store/places.js";
import { fc } from "../support/fc.js";

const reading = (times: number[], publication = 1) =>
  ({ publication, times: Float64Array.from(times) }) as never;
const ascending = (a: number, b: number) => a - b;

/** Ascending times, with gaps that others could fill. */
const times = fc
  .uniqueArray(fc.integer({ min: 0, max: 900 }), { maxLength: 150 })
  .map((all) => all.sort(ascending));
/** By a number, whether each of some times is in a subset. */
const subset = (of: readonly number[], seed: number, share = 3) =>
  of.filter((time) => (((time + 7) * (seed + 11) * 2_654_435_761) % 2 ** 32) % 7 < share);

/** Every time of the sets, oldest first, as `each` visits them. */
function visited(places: Places, sets: readonly PlaceSet[]): number[] {
  const found: number[] = [];
  places.each(sets, (place) => found.push(places.timeAt(place)));
  return found;
}

test("sets of positions equal sets of times when counted, iterated and collected", () => {
  const seeds = fc.record({
    one: fc.nat(99),
    two: fc.nat(99),
    better: fc.nat(99),
    skip: fc.nat(60),
    limit: fc.integer({ min: 1, max: 60 }),
  });
  fc.assert(
    fc.property(times, seeds, (all, { one, two, better, skip, limit }) => {
      const places = new Places(reading(all));
      const [first, second, third] = [subset(all, one, 5), subset(all, two, 5), subset(all, better)];
      // What has no place is in no set.
      const sets = [
        places.setOf(Float64Array.from([...first, 1000])),
        places.setOf(Float64Array.from(second)),
      ];
      const both = first.filter((time) => second.includes(time));
      assert.is(places.count(sets), both.length);
      assert.is(places.count([]), all.length);
      assert.equal(visited(places, sets), both);
      const good = [places.setOf(Float64Array.from(third))];
      for (const within of [null, good]) {
        const wanted = both.filter((time) => within === null || !third.includes(time)).reverse();
        const found: number[] = [];
        const left = places.collect(sets, within, { skip, limit }, found);
        assert.equal(found, wanted.slice(skip, skip + limit));
        assert.is(left, Math.max(0, skip - wanted.length));
      }
      const order = Float64Array.from([...all, 1001, -1].sort((a, b) => ((a * 37) % 101) - ((b * 37) % 101)));
      assert.equal(
        places.collectInOrder(order, sets, { skip, limit }),
        [...order].filter((time) => both.includes(time)).slice(skip, skip + limit),
      );
      for (const [place, time] of all.entries()) {
        assert.is(places.placeAt(time), place);
        assert.is(places.timeAt(place), time);
      }
      for (const time of [-1, 1000, ...all.map((each) => each + 0.5)]) assert.is(places.placeAt(time), -1);
    }),
    { numRuns: 60 },
  );
});

test("removed items free their position, returning ones reclaim it, new ones go last", () => {
  fc.assert(
    fc.property(
      times,
      fc.nat(99),
      fc.nat(99),
      fc.uniqueArray(fc.integer({ min: 1000, max: 1100 }), { maxLength: 40 }),
      (all, one, two, fresh) => {
        const places = new Places(reading(all));
        const before = places.setOf(Float64Array.from(all));
        const kept = subset(all, one, 5);
        assert.equal(places.come(reading(kept)), [], "nothing comes where some only go");
        places.advance(reading(kept, 2));
        assert.is(places.publication, 2);
        assert.equal(visited(places, []), kept);
        assert.equal(visited(places, [before]), kept, "an older set still holds");
        const later = [...subset(all, two, 5), ...fresh.sort(ascending)];
        const came = later.filter((time) => !kept.includes(time));
        assert.equal(places.come(reading(later)), came);
        places.advance(reading(later, 3));
        assert.equal(visited(places, []), later);
        assert.equal(
          visited(places, [before]),
          later.filter((time) => all.includes(time)),
        );
        for (const [place, time] of [...all, ...fresh].entries()) assert.is(places.placeAt(time), place);
        for (const time of fresh) places.addTo(before, time);
        assert.equal(visited(places, [before]), later);
      },
    ),
    { numRuns: 60 },
  );
});

test("inserting between neighbours without a free position renumbers all positions", () => {
  const places = new Places(reading([10, 20, 30]));
  assert.is(places.come(reading([10, 15, 20])), null);
  assert.is(places.come(reading([5])), null);
  assert.equal(places.come(reading([10, 20, 30, 31])), [31]);
  // There is room for 1,024 more.
  const behind = (count: number) => Array.from({ length: count }, (_, at) => 100 + at);
  assert.equal(places.come(reading([10, ...behind(1024)]))?.length, 1024);
  assert.is(places.come(reading([10, ...behind(1025)])), null);
  assert.is(places.capacity, 1027);
  assert.is(places.setBytes, 4 * 33, "a bit each, in words of 32");
  // And for a sixteenth of many.
  assert.is(new Places(reading(behind(32_000))).capacity, 34_000);
  const none = new Places(reading([]));
  assert.equal(none.come(reading([1, 2])), [1, 2]);
  none.advance(reading([1, 2], 2));
  assert.equal(visited(none, []), [1, 2]);
});

test.run();
