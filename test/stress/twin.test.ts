import { test } from "uvu";
import { checkMixed } from "../engine/support/check-mixed.js";
import { mixedRequests } from "../engine/support/mixed-requests.js";

const requests = Number(process.env.TAPLINE_STRESS_TWIN ?? 1000);

for (const [where, options] of [
  ["in the callback", {}],
  ["in the graph", { edits: "graph", inGraph: true }],
  ["in both, together", { edits: "graph" }],
] as const) {
  test(`${requests} mixed requests, edits ${where}: plain rows equal to the bit`, async () => {
    const report = await mixedRequests(requests, 16, options);
    const { twin, answered, left, retried, compared, ties } = report;
    console.log(
      `      ${answered} answered, ${left} left, ${retried} retried; ${twin.batches} batches, ` +
        `${twin.plain.beside} plain and ${twin.neutral.beside} neutral rows beside edited ones, ` +
        `${twin.edited.different} of ${twin.edited.rows} edited rows moved; ` +
        `${compared} tokens as in a lone run, ${ties.length} ties${ties.length === 0 ? "" : `: ${[...new Set(ties)].slice(0, 5).join("; ")}`}`,
    );
    checkMixed(report, requests);
  });
}

test.run();
