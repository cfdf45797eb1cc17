import { test } from "uvu";
import { checkMixed } from "./support/check-mixed.js";
import { mixedRequests } from "./support/mixed-requests.js";

test("40 mixed requests: rows of plain ones are, to the bit, those of the same batches without any edit", async () => {
  const report = await mixedRequests(40, 15);
  checkMixed(report, 40);
});

test.run();
