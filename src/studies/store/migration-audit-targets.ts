import type { Kysely, Migration } from "kysely";
import { normalized } from "./accounts.js";
import type { Database } from "./schema.js";

/**
 * Approvals were written down as the operator typed them. From now on the log has the account's id as soon as there is
 * one, so that no address is left there when the account goes.
 */
export const auditTargets: Migration = {
  async up(db: Kysely<Database>) {
    const owners = new Map<string, string>();
    for (const { identity, account_id } of await db
      .selectFrom("approvals")
      .select(["identity", "account_id"])
      .execute()) {
      if (account_id !== null) owners.set(identity, account_id);
    }
    const records = await db
      .selectFrom("audit")
      .select(["id", "target"])
      .where("action", "in", ["approval.add", "approval.remove"])
      .execute();
    for (const { id, target } of records) {
      const named = normalized(target);
      const now = owners.get(named) ?? named;
      if (now !== target) await db.updateTable("audit").set({ target: now }).where("id", "=", id).execute();
    }
  },
};
