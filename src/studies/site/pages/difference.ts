import type { StudyPackage } from "../../../contracts/studies/index.js";
import { differences } from "../../text/differences.js";
import { type Html, html } from "../html.js";
import type { Pace } from "../pace.js";
import type { Shown } from "../reveal.js";

const mostDifferences = 300;
const mostMarkup = 1_500_000;

/** The differences between two versions, up to a size limit. */
export async function differenceView(
  before: StudyPackage,
  after: StudyPackage,
  shown: Shown,
  pace: Pace,
): Promise<Html> {
  const found = differences(before, after);
  const parts: Html[] = [];
  let left = mostMarkup;
  for (const one of found.slice(0, mostDifferences)) {
    if (left <= 0) break;
    await pace.turn();
    const part = html`<p class="hint"><code>${shown(one.place)}</code></p>
${one.before === null ? null : html`<del>${shown(one.before)}</del>`}${one.after === null ? null : html`<ins>${shown(one.after)}</ins>`}`;
    parts.push(part);
    left -= part.markup.length;
  }
  const more = found.length - parts.length;
  return html`${found.length === 0 ? html`<p>The content is identical.</p>` : null}${parts}${
    more > 0
      ? html`<p class="notice">${more} more differences are not shown, to limit the page size.</p>`
      : null
  }`;
}
