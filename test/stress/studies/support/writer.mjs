// A process that saves drafts, publishes, comments, votes and moderates until it is killed, and says what was acknowledged.
// Arguments: where the modules of src/studies/store are and how they end, a package as JSON, the database, the author's
// account, another's.
const [folder, extension, sample, location, accountId, otherId] = process.argv.slice(2);
const moduleOf = (name) => import(`${folder}/${name}${extension}`);
const [
  { addComment, setUpvote },
  { saveDraft },
  { remove, setCommentHidden },
  { publishDraft },
  { openStore },
  { sha256Hex },
] = await Promise.all(["discussion", "drafts", "moderation", "publish", "store", "tokens"].map(moduleOf));

const store = await openStore(location);
process.send?.({ ready: true });
for (let count = 0; ; count += 1) {
  await store.db.updateTable("accounts").set({ recent_drafts: "[]" }).where("id", "=", accountId).execute();
  const bytes = Buffer.from(JSON.stringify({ ...JSON.parse(sample), title: `${process.pid} ${count}` }));
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
  if (published.outcome !== "published") continue;
  process.send?.({ published: saved.id });
  const added = await addComment(store, { accountId: otherId, name: "Ben" }, saved.id, null, "said");
  if (added.outcome !== "added") throw new Error(added.outcome);
  process.send?.({ comment: added.id });
  if ((await setUpvote(store, otherId, saved.id, true)) === "counted") process.send?.({ voted: saved.id });
  if (count % 2 === 0) continue;
  if ((await setCommentHidden(store, "operator", added.id, "why")) !== null)
    process.send?.({ hidden: added.id });
  const whole = { studyId: saved.id, version: null };
  if ((await remove(store, "operator", whole, "why")) === "changed") process.send?.({ removed: saved.id });
}
