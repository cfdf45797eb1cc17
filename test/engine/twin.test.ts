import { test } from "uvu";
import { checkMixed } from "./support/check-mixed.js";
import { mixedRequests } from "./support/mixed-requests.js";

test("40 mixed requests: unedited rows equal unedited batches to the bit", async () => {
  const report = await mixedRequests(40, 15);
  checkMixed(report, 40);
});

test.run();
