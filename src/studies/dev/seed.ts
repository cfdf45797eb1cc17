import { randomUUID } from "node:crypto";
import type { StudyPackage } from "../../contracts/studies/index.js";
import { type Account, signInAccount } from "../store/accounts.js";
import { addComment, setUpvote } from "../store/discussion.js";
import { publishDraft } from "../store/publish.js";
import type { Store } from "../store/store.js";
import { sha256Hex } from "../store/tokens.js";
import { seedStudies } from "./seed-studies.js";

/** Fills an empty service with sample studies, comments and upvotes. */
export async function seed(store: Store): Promise<void> {
  const people: Account[] = [];
  for (const name of ["Mara Lindqvist", "Tomás Ibarra", "Noor Haddad", "Kenji Mori", "Ruth Okafor"]) {
    people.push(
      await signInAccount(store, { issuer: "seed", subject: name, name, email: null, login: null }),
    );
  }
  const person = (index: number) => people[index % people.length] as Account;
  for (const [index, { study, comments }] of seedStudies().entries()) {
    const author = person(index);
    const bytes = Buffer.from(JSON.stringify(study));
    const id = await saveSeedDraft(store, author.id, study, bytes);
    const publication = {
      accountId: author.id,
      draftId: id,
      reviewedSha256: sha256Hex(bytes),
      replaces: null,
    };
    await publishDraft(store, publication);
    const commentIds: string[] = [];
    for (const [place, { body, answers }] of comments.entries()) {
      const speaker = person(index + place + 1);
      const parent = answers === undefined ? null : (commentIds[answers] ?? null);
      const added = await addComment(store, { accountId: speaker.id, name: speaker.name }, id, parent, body);
      commentIds.push(added.outcome === "added" ? added.id : "");
    }
    for (let voter = 0; voter < (index * 7) % 6; voter += 1)
      await setUpvote(store, person(voter).id, id, true);
  }
}

// Sample drafts have no token, so no quota applies.
async function saveSeedDraft(
  store: Store,
  accountId: string,
  study: StudyPackage,
  bytes: Buffer,
): Promise<string> {
  const id = randomUUID();
  await store.db
    .insertInto("drafts")
    .values({
      id,
      account_id: accountId,
      token_id: randomUUID(),
      title: study.title,
      created_at: store.dialect.now,
      sha256: sha256Hex(bytes),
      package: bytes,
    })
    .execute();
  return id;
}
