import type { StudyPackage } from "../../../src/contracts/studies/index.js";
import { addComment } from "../../../src/studies/store/discussion.js";
import { publishDraft } from "../../../src/studies/store/publish.js";
import { samplePackage } from "./packages.js";
import type { Answer, TestService } from "./service.js";

export type Person = Awaited<ReturnType<TestService["account"]>>;

/**
 * User actions on the website, each in one line. @param clock moves forward before each, so that ordered output has
 * distinct times
 */
export function peopleOf(service: TestService, clock: { ms: number } = { ms: 0 }) {
  const { store } = service.running.service;
  const csrf = new Map<string, string>();
  const tokens = new Map<string, string>();
  const see = (path: string, who: Person | null = null): Promise<Answer> =>
    service.call(path, who === null ? {} : { headers: { Cookie: who.cookie } });
  const save = async (who: Person, change: Partial<StudyPackage> = {}) => {
    clock.ms += 1000;
    const token = tokens.get(who.id) ?? (await service.token(who.id)).token;
    tokens.set(who.id, token);
    const body = JSON.stringify(samplePackage(change));
    const { json } = await service.api(token, "/api/v1/studies", { method: "POST", body });
    // Tests need more of both in a moment than people in a day.
    await store.db.updateTable("tokens").set({ recent: "[]" }).execute();
    await store.db.updateTable("accounts").set({ recent_drafts: "[]" }).execute();
    return { id: json.id as string, sha256: json.package_sha256 as string, body };
  };
  return {
    store,
    see,
    save,
    /** Posts a form of a person's, as their browser would. */
    async post(path: string, who: Person, form: Record<string, string> = {}): Promise<Answer> {
      if (!csrf.has(who.cookie)) {
        const { text } = await see("/account", who);
        csrf.set(who.cookie, /name="csrf" value="([^"]+)"/.exec(text)?.[1] ?? "none");
      }
      return service.call(path, {
        method: "POST",
        body: new URLSearchParams({ csrf: csrf.get(who.cookie) as string, ...form }).toString(),
        headers: {
          "Content-Type": "application/x-www-form-urlencoded",
          Origin: service.running.origin,
          Cookie: who.cookie,
        },
      });
    },
    /** @returns the study's id, and the hash and text of the package */
    async publish(who: Person, change: Partial<StudyPackage> = {}, replaces: string | null = null) {
      const draft = await save(who, change);
      clock.ms += 1000;
      const reviewed = { accountId: who.id, draftId: draft.id, reviewedSha256: draft.sha256, replaces };
      const { id } = (await publishDraft(store, reviewed)) as { id: string };
      return { ...draft, id };
    },
    async comment(study: string, who: Person, body: string, parent: string | null = null) {
      clock.ms += 1000;
      const added = await addComment(store, { accountId: who.id, name: who.name }, study, parent, body);
      return (added as { id: string }).id;
    },
  };
}

/** A text field that states what a study repeats, and the outcome. */
export function reproduction(block: object): string {
  return `\`\`\`tapline-reproduction\n${JSON.stringify({ schemaVersion: 1, ...block })}\n\`\`\``;
}
