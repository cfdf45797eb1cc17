/** A process that saves drafts until it is killed, and says which were acknowledged. Arguments: database, account. */
import { saveDraft } from "../../../../src/studies/store/drafts.js";
import { publishDraft } from "../../../../src/studies/store/publish.js";
import { openStore } from "../../../../src/studies/store/store.js";
import { sha256Hex } from "../../../../src/studies/store/tokens.js";
import { samplePackage } from "../../../studies/support/packages.js";

const [location, accountId] = process.argv.slice(2) as [string, string];
const store = await openStore(location);
process.send?.({ ready: true });
for (let count = 0; ; count += 1) {
  await store.db.updateTable("accounts").set({ recent_drafts: "[]" }).where("id", "=", accountId).execute();
  const bytes = Buffer.from(JSON.stringify(samplePackage({ title: `${process.pid} ${count}` })));
  const saved = await saveDraft(store, { tokenId: accountId, accountId, scopes: [] }, bytes, "t", null);
  if (saved.outcome !== "saved") throw new Error(saved.outcome);
  process.send?.({ draft: saved.id, sha256: saved.sha256 });
  if (count % 3 !== 2) continue;
  const published = await publishDraft(store, {
    accountId,
    draftId: saved.id,
    reviewedSha256: sha256Hex(bytes),
    replaces: null,
  });
  if (published.outcome === "published") process.send?.({ published: saved.id });
}
