import type { Reading } from "./reading.js";

/** A bit set of places. */
export type PlaceSet = Uint32Array;

/**
 * Assigns each listed study a stable place (index), ordered by publication time. An unlisted study keeps its place for
 * its return; new publications get places at the end. So sets of places stay valid while studies come and go.
 */
export class Places {
  /** The publication number of this state. */
  publication: number;
  /** Ascending; with room for more after the first `#count`. */
  readonly #times: Float64Array;
  #count: number;
  #listed: PlaceSet;

  constructor({ publication, times }: Reading) {
    this.publication = publication;
    this.#times = new Float64Array(times.length + Math.max(1024, times.length >>> 4));
    this.#times.set(times);
    this.#count = times.length;
    this.#listed = this.setOf(times);
  }

  /** Size of a set in bytes. */
  get setBytes(): number {
    return this.#listed.byteLength;
  }

  /** The places of ascending times; times without a place are skipped. */
  setOf(times: Float64Array): PlaceSet {
    const set = new Uint32Array((this.#times.length + 31) >>> 5);
    let at = 0;
    for (const time of times) {
      while (at < this.#count && (this.#times[at] as number) < time) at += 1;
      if (at < this.#count && this.#times[at] === time) add(set, at);
    }
    return set;
  }

  /** Number of places, including free ones; the length of columns indexed by place. */
  get capacity(): number {
    return this.#times.length;
  }

  /** The place of a time; -1 if it has none. */
  placeAt(time: number): number {
    const at = this.#placeOf(time);
    return at < this.#count && this.#times[at] === time ? at : -1;
  }

  /** The time at a place. */
  timeAt(place: number): number {
    return this.#times[place] as number;
  }

  /** Visits the listed studies in the intersection of the sets, oldest first. */
  each(sets: readonly PlaceSet[], visit: (place: number) => void): void {
    for (let at = 0; at < this.#listed.length; at += 1) {
      for (let bits = this.#common(sets, at); bits !== 0; bits &= bits - 1)
        visit(at * 32 + 31 - Math.clz32(bits & -bits));
    }
  }

  /** Adds the place of a time to a set. */
  addTo(set: PlaceSet, time: number): void {
    add(set, this.#placeOf(time));
  }

  /** The place of a time, or its insertion point. */
  #placeOf(time: number): number {
    let low = 0;
    for (let high = this.#count; low < high; ) {
      const middle = (low + high) >>> 1;
      if ((this.#times[middle] as number) < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /**
   * Times that are listed in a later reading but not here.
   * @returns null if all places must be reassigned: a time belongs between others, or there is no room
   */
  come({ times }: Reading): number[] | null {
    const came: number[] = [];
    let at = 0;
    let appended = 0;
    for (const time of times) {
      while (at < this.#count && (this.#times[at] as number) < time) at += 1;
      if (at === this.#count) {
        appended += 1;
        came.push(time);
      } else if (this.#times[at] !== time) {
        return null;
      } else if (((this.#listed[at >>> 5] as number) & (1 << (at & 31))) === 0) {
        came.push(time);
      }
    }
    return this.#count + appended > this.#times.length ? null : came;
  }

  /** Applies a later reading for which `come` did not return null. */
  advance({ publication, times }: Reading): void {
    const last = this.#count === 0 ? -1 : (this.#times[this.#count - 1] as number);
    const added = times.filter((time) => time > last);
    this.#times.set(added, this.#count);
    this.#count += added.length;
    this.#listed = this.setOf(times);
    this.publication = publication;
  }

  /** Number of listed studies in the intersection of the sets. */
  count(sets: readonly PlaceSet[]): number {
    let count = 0;
    for (let at = 0; at < this.#listed.length; at += 1) count += ones(this.#common(sets, at));
    return count;
  }

  /** Times in the given order that are listed and in all sets: `limit` of them after `skip`. */
  collectInOrder(
    order: Float64Array,
    sets: readonly PlaceSet[],
    { skip, limit }: { skip: number; limit: number },
  ): number[] {
    const found: number[] = [];
    let left = skip;
    for (const time of order) {
      const at = this.#placeOf(time);
      if (this.#times[at] !== time || ((this.#common(sets, at >>> 5) >>> (at & 31)) & 1) === 0) continue;
      if (left > 0) left -= 1;
      else found.push(time);
      if (found.length === limit) break;
    }
    return found;
  }

  /**
   * Appends to `times` the newest listed studies that are in all sets but not in all better ones, until it has `limit`.
   * @returns how many of `skip` are still to be skipped
   */
  collect(
    sets: readonly PlaceSet[],
    better: readonly PlaceSet[] | null,
    { skip, limit }: { skip: number; limit: number },
    times: number[],
  ): number {
    let left = skip;
    for (let at = (this.#count - 1) >> 5; at >= 0; at -= 1) {
      let bits = this.#common(sets, at);
      if (better !== null) bits &= ~this.#common(better, at);
      const here = ones(bits);
      if (here <= left) {
        left -= here;
        continue;
      }
      for (let bit = 31; bit >= 0; bit -= 1) {
        if (((bits >>> bit) & 1) === 0) continue;
        if (left > 0) {
          left -= 1;
          continue;
        }
        times.push(this.#times[at * 32 + bit] as number);
        if (times.length === limit) return 0;
      }
    }
    return left;
  }

  #common(sets: readonly PlaceSet[], at: number): number {
    let bits = this.#listed[at] as number;
    for (const set of sets) bits &= set[at] as number;
    return bits;
  }
}

function add(set: PlaceSet, place: number): void {
  set[place >>> 5] = (set[place >>> 5] as number) | (1 << (place & 31));
}

/** Population count of 32 bits. */
function ones(word: number): number {
  let sum = word - ((word >>> 1) & 0x55555555);
  sum = (sum & 0x33333333) + ((sum >>> 2) & 0x33333333);
  return (((sum + (sum >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}
