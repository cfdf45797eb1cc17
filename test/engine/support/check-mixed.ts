import * as assert from "uvu/assert";
import type { MixedReport } from "./mixed-requests.js";

/** What has to hold of `requests` mixed requests. */
export function checkMixed(report: MixedReport, requests: number): void {
  const { twin, answered, left, retried, problems, texts } = report;
  assert.is(twin.first, "", "plain and neutral rows");
  assert.equal([twin.plain.different, twin.neutral.different, twin.lost], [0, 0, 0]);
  // And they had been beside edited ones, as three of four requests edit.
  assert.ok(twin.plain.beside > requests / 2, `${twin.plain.beside} plain rows beside edited ones`);
  assert.ok(twin.neutral.beside > 0, `${twin.neutral.beside} neutral rows beside edited ones`);
  // A hook that does nothing would leave the edited rows as they are, too.
  const { different, rows } = twin.edited;
  assert.ok(different > 0.5 * rows && rows > 2 * requests, `${different} of ${rows} edited rows differ`);
  assert.ok(texts >= 8, `${texts} different answers; the edits do nothing`);
  assert.is(answered, requests - left + retried);
  assert.equal(
    problems.slice(0, 5),
    [],
    `${problems.length} of ${answered} answers are not those of a lone run`,
  );
  assert.ok(report.compared > requests, `${report.compared} tokens compared with those of a lone run`);
}
