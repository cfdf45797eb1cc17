import { type Command, InvalidArgumentError } from "commander";
import { UserError } from "../../contracts/user-error.js";
import type { Store } from "../../studies/store/store.js";
import { lineOf } from "../../text/hidden.js";
import { integerBetween } from "../options.js";

/** The database of a `tapline studies` command. */
export interface DatabaseOptions {
  config?: string;
  data?: string;
}

/** A reason, if the command requires one; a version of a study. */
interface ChangeOptions extends DatabaseOptions {
  reason: string;
  versionNumber?: number;
}

type Moderation = typeof import("../../studies/store/moderation.js");

interface Change<Target, Result> {
  act(moderation: Moderation, store: Store, target: Target, reason: string): Promise<Result>;
  /** Printed after the target's name when done. */
  outcome: string;
  reasoned?: boolean;
}

type WithStore = (options: DatabaseOptions, work: (store: Store) => Promise<void>) => Promise<void>;

const roles = ["agent", "publisher", "moderator"] as const;
type Role = (typeof roles)[number];

/** `tapline studies approve`, `remove`, `suspend` and further commands for operators. */
export function registerModeration(
  command: (name: string, description: string) => Command,
  withStore: WithStore,
): void {
  const who = "an email address, github:login, issuer#subject, @handle or account id";
  command("approve", `Allow a person to create tokens ("agent"), publish or moderate: ${who}.`)
    .argument("<role>", roles.join(", "), parseRole)
    .argument("<identity>")
    .action(async (role: Role, identity: string, options: DatabaseOptions) => {
      const { approve } = await import("../../studies/store/approvals.js");
      await withStore(options, (store) => approve(store, role, identity));
      console.log(`${identity} is approved as ${role}.`);
    });
  command("disapprove", "Revoke an approval, effective immediately; an agent's tokens are revoked too.")
    .argument("<role>", roles.join(", "), parseRole)
    .argument("<identity>")
    .action(async (role: Role, identity: string, options: DatabaseOptions) => {
      const { disapprove } = await import("../../studies/store/approvals.js");
      await withStore(options, async (store) => {
        if (!(await disapprove(store, role, identity)))
          throw new UserError(`${identity} was not approved as ${role}.`);
      });
      console.log(`${identity} is no longer approved as ${role}.`);
    });

  /** Commands that change the state of one study, comment or account, which `find` looks up. */
  const changes =
    <Target, Result>(
      of: "study" | "comment" | "account",
      find: (named: string, options: ChangeOptions, store: Store) => Target | Promise<Target>,
      check: (result: Result, what: string) => void,
    ) =>
    (name: string, description: string, { act, outcome, reasoned = false }: Change<Target, Result>) => {
      const one = command(name, description).argument(`<${of}>`);
      if (of === "study") {
        one.option("--version-number <n>", "only this version", integerBetween(1, 999_999_999));
      }
      if (reasoned) one.requiredOption("--reason <text>", "reason shown to readers", parseReason);
      one.action(async (named: string, options: ChangeOptions) => {
        const moderation = await import("../../studies/store/moderation.js");
        await withStore(options, async (store) => {
          const target = await find(named, options, store);
          check(await act(moderation, store, target, options.reason), `${of} ${named}`);
        });
        console.log(`${named} ${outcome}.`);
      });
    };
  const studyCommand = changes(
    "study",
    (named, { versionNumber }) => ({ studyId: named.toLowerCase(), version: versionNumber ?? null }),
    done,
  );
  const commentCommand = changes("comment", (named) => named.toLowerCase(), found);
  const accountCommand = changes(
    "account",
    async (named, _options, store) => {
      const { accountNamed } = await import("../../studies/store/accounts.js");
      return accountNamed(store.db, named);
    },
    done,
  );
  studyCommand("remove", "Take down a published study or one version of it.", {
    act: ({ remove }, store, study, reason) => remove(store, "operator", study, reason),
    outcome: "is removed",
    reasoned: true,
  });
  studyCommand("reinstate", "Publish a removed study again.", {
    act: ({ reinstate }, store, study) => reinstate(store, "operator", study),
    outcome: "is published again",
  });
  commentCommand("hide", "Hide a comment from readers.", {
    act: ({ setCommentHidden }, store, id, reason) => setCommentHidden(store, "operator", id, reason),
    outcome: "is hidden",
    reasoned: true,
  });
  commentCommand("show", "Show a hidden comment again.", {
    act: ({ setCommentHidden }, store, id) => setCommentHidden(store, "operator", id, null),
    outcome: "is shown again",
  });
  commentCommand("erase", "Permanently delete a comment's text.", {
    act: ({ eraseComment }, store, id, reason) => eraseComment(store, "operator", id, reason),
    outcome: "is erased",
    reasoned: true,
  });
  accountCommand("suspend", `Suspend an account: its tokens and sessions end immediately. Account: ${who}.`, {
    act: ({ suspend }, store, account, reason) => suspend(store, "operator", account, reason),
    outcome: "is suspended",
    reasoned: true,
  });
  accountCommand("unsuspend", "Let a suspended account sign in again.", {
    act: ({ unsuspend }, store, account) => unsuspend(store, "operator", account),
    outcome: "is no longer suspended",
  });
  command(
    "export-account",
    `Export an account's content and stored data to an archive, for people who cannot sign in. Account: ${who}.`,
  )
    .argument("<account>")
    .argument("<file.tar>")
    .action(async (account: string, file: string, options: DatabaseOptions) => {
      const [{ accountNamed }, { personalFiles }, { tar }, { audit, asOperator }, { writeWhole }] =
        await Promise.all([
          import("../../studies/store/accounts.js"),
          import("../../studies/personal/export.js"),
          import("../../studies/personal/tar.js"),
          import("../../studies/store/audit.js"),
          import("../../client/whole-file.js"),
        ]);
      await withStore(options, async (store) => {
        const { id } = await accountNamed(store.db, account);
        const now = await asOperator(store, async (trx, at) => {
          await audit(trx, at, { actor: "operator", action: "account.export", target: id });
          return at;
        });
        await writeWhole(file, tar(personalFiles(store, id), now));
      });
      console.log(`Exported ${account} to ${file}.`);
    });
  command(
    "delete-account",
    `Permanently delete an account, for people who cannot sign in; its published content stays, without a name. Account: ${who}.`,
  )
    .argument("<account>")
    .option("--yes", "delete; without it, only print what would be deleted")
    .action(async (account: string, options: DatabaseOptions & { yes?: boolean }) => {
      const [{ accountNamed }, { deleteAccountOf, deletedName, whatLeaves }] = await Promise.all([
        import("../../studies/store/accounts.js"),
        import("../../studies/store/deletion.js"),
      ]);
      await withStore(options, async (store) => {
        const person = await accountNamed(store.db, account);
        const { studies, comments, votes, drafts, tokens } = await whatLeaves(store, person.id);
        if (options.yes) await deleteAccountOf(store, person);
        const [goes, stays] = options.yes ? ["Deleted", "Kept"] : ["Would delete", "Would keep"];
        console.log(`${goes}: name, address and handle of ${account}, drafts ${drafts}, tokens ${tokens}.`);
        console.log(
          `${stays} under "${deletedName}": studies ${studies}, comments ${comments}, votes ${votes}.`,
        );
        if (!options.yes) console.log("Nothing was deleted. Use --yes to delete.");
      });
    });
  command("reports", "List open reports and appeals.").action(async (options: DatabaseOptions) => {
    const [{ openReports }, { openAppeals }] = await Promise.all([
      import("../../studies/store/reports.js"),
      import("../../studies/store/appeals.js"),
    ]);
    await withStore(options, async (store) => {
      const reports = await openReports(store);
      for (const { id, study_id, comment_id, reporter, created_at, reason } of reports) {
        const what = comment_id === null ? `study ${study_id}` : `comment ${comment_id} on ${study_id}`;
        console.log([time(created_at), `report ${id}`, what, `@${reporter}`, lineOf(reason)].join("  "));
      }
      const appeals = await openAppeals(store);
      for (const { id, study_id, handle, created_at, body } of appeals) {
        const what = study_id === null ? "suspension" : `removal of ${study_id}`;
        console.log([time(created_at), `appeal ${id}`, what, `@${handle}`, lineOf(body)].join("  "));
      }
      if (reports.length + appeals.length === 0) console.log("Nothing to review.");
    });
  });
  command("dismiss", "Close a report or an appeal without further action.")
    .argument("<report>")
    .action(async (id: string, options: DatabaseOptions) => {
      const [{ dismissReport }, { dismissAppeal }] = await Promise.all([
        import("../../studies/store/reports.js"),
        import("../../studies/store/appeals.js"),
      ]);
      await withStore(options, async (store) => {
        const closed =
          (await dismissReport(store, "operator", id.toLowerCase())) ||
          (await dismissAppeal(store, "operator", id.toLowerCase()));
        found(closed || null, `open report ${id}`);
      });
      console.log(`Report ${id} is closed.`);
    });
  command("audit", "Print the audit log, newest first.")
    .option("--target <id>", "only entries about this study, comment, token, account or report")
    .option("--limit <n>", "number of entries (1 to 10,000)", integerBetween(1, 10_000), 100)
    .action(async (options: DatabaseOptions & { target?: string; limit: number }) => {
      const { readAudit } = await import("../../studies/store/audit.js");
      await withStore(options, async (store) => {
        for (const { at, actor, handle, action, target, detail } of await readAudit(store, options)) {
          const person = handle === null ? actor : `@${handle}`;
          console.log([time(at), person, action, lineOf(target), lineOf(detail ?? "")].join("  ").trimEnd());
        }
      });
    });
}

function time(ms: number): string {
  return new Date(ms).toISOString();
}

function done(changed: "changed" | "missing" | "already" | "moderator", what: string): void {
  if (changed === "missing") throw new UserError(`There is no ${what}.`);
  if (changed !== "changed")
    throw new UserError(`The ${what} is already in that state, or has no such version.`);
}

function found(result: string | true | null, what: string): void {
  if (result === null) throw new UserError(`There is no ${what}, or it is already in that state.`);
}

function parseRole(text: string): string {
  if (!(roles as readonly string[]).includes(text))
    throw new InvalidArgumentError(`It must be one of ${roles.join(", ")}.`);
  return text;
}

function parseReason(text: string): string {
  const length = [...text].length;
  if (text.trim() === "" || length > 1000)
    throw new InvalidArgumentError(`It must have 1 to 1000 characters, got ${length}.`);
  return text;
}
