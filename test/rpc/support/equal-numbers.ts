import * as assert from "uvu/assert";
import type { InspectResult, Job } from "../../../src/contracts/index.js";

/** What of a result depends on the model's numbers alone. */
function numbers(job: Job): unknown {
  assert.is(job.status, "completed", job.error);
  const { provenance: _provenance, ...rest } = job.result as InspectResult;
  return rest;
}

/** A graph adds up the squares of a length in F32, the host in double: machines agree to seven digits. */
export function assertEqualNumbers(there: Job, here: Job): void {
  const lengths: number[][] = [[], []];
  const others = [there, here]
    .map(numbers)
    .map((value, side) =>
      JSON.stringify(value, (key, own) =>
        key === "length" || key === "row_length" ? void lengths[side]?.push(own as number) : own,
      ),
    );
  assert.is(others[0], others[1]);
  assert.is(lengths[0]?.length, lengths[1]?.length);
  for (const [i, length] of (lengths[0] as number[]).entries()) {
    const own = lengths[1]?.[i] as number;
    const off = length === own ? 0 : Math.abs(length / own - 1);
    assert.ok(off < 1e-6, `a length is off by ${off}`);
  }
}
