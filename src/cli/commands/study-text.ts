import type { Discussion, Entry, StudyEnvelope, StudyPage } from "../../contracts/studies/index.js";
import { oneLine } from "../../findings/text.js";
import { wrap } from "../../terminal/fit.js";
import { bold, type Canvas, dim } from "../../terminal/index.js";
import { safeLines } from "./study-client.js";

/** A page of studies, at least three lines each. */
export function pageText(page: StudyPage, { width, colors }: Canvas): string {
  if (page.items.length === 0)
    return page.total === 0 ? "No studies." : `No studies from offset ${page.offset}.`;
  const lines = page.items.flatMap((study) => {
    const counts = `${many(study.upvotes, "upvote")}, ${many(study.comment_count, "comment")}`;
    const facts = [study.author.name, study.model.name, day(study.published_at), counts];
    return [
      ...wrap(oneLine(study.title), width).map((line) => bold(line, colors)),
      dim(`  ${study.id}`, colors),
      ...wrap(facts.map(oneLine).join(" · "), width - 2).map((line) => dim(`  ${line}`, colors)),
      ...wrap(oneLine(study.question), width - 2).map((line) => `  ${line}`),
      "",
    ];
  });
  const until = page.offset + page.items.length;
  const more = page.next_offset === null ? "" : `; --offset ${page.next_offset} shows more`;
  return [...lines, dim(`${page.offset + 1} to ${until} of ${page.total}${more}`, colors)].join("\n");
}

/** A whole study, with its entries as a tree. */
export function studyText(envelope: StudyEnvelope, { colors }: Canvas): string {
  const study = envelope.package;
  const when =
    envelope.published_at === null
      ? "private draft"
      : `version ${envelope.version}, ${day(envelope.published_at)}`;
  const model = [study.model.name, study.model.revision ?? "", study.model.runtime].filter(
    (part) => part !== "",
  );
  const facts = [envelope.author.name, when, study.license, ...model].map(oneLine).join(" · ");
  const section = (name: string, text: string) =>
    text === "" ? [] : ["", bold(name, colors), ...safeLines(text).map((line) => `  ${line}`)];
  return [
    bold(oneLine(study.title), colors),
    dim(facts, colors),
    dim(oneLine(envelope.url), colors),
    ...section("Question", study.question),
    ...section("Hypothesis", study.hypothesis),
    ...section("Method", study.method),
    ...section("Finding", study.finding),
    ...section("Limitations", study.limitations),
    ...section("Left out", study.omissions.map((text) => `- ${text}`).join("\n")),
    ...study.entries.flatMap((entry, index) => {
      const depth = "  ".repeat(Math.min(8, depthOf(study.entries, index)));
      return ["", ...entryLines(entry, index, colors).map((line) => `${depth}${line}`)];
    }),
  ].join("\n");
}

/** Comments in thread order. */
export function discussionText(discussion: Discussion, { colors }: Canvas): string {
  const head = `${many(discussion.total, "comment")}, ${many(discussion.upvotes, "upvote")}`;
  const depths = new Map<string, number>();
  const lines = discussion.comments.flatMap((comment) => {
    const depth = comment.parent_id === null ? 0 : (depths.get(comment.parent_id) ?? 0) + 1;
    depths.set(comment.id, depth);
    const indent = "  ".repeat(Math.min(8, depth));
    return [
      "",
      `${indent}${bold(oneLine(comment.author.name), colors)} ${dim(day(comment.created_at), colors)}`,
      ...(comment.state === undefined
        ? safeLines(comment.body).map((line) => `${indent}  ${line}`)
        : [dim(`${indent}  (${comment.state})`, colors)]),
    ];
  });
  return [dim(head, colors), ...lines].join("\n");
}

function entryLines(entry: Entry, index: number, colors: Canvas["colors"]): string[] {
  const field = (name: string, text: string | undefined) => {
    if (text === undefined || text === "") return [];
    const [first, ...rest] = safeLines(text);
    const label = `${name}: `;
    return [`  ${dim(label, colors)}${first}`, ...rest.map((line) => `  ${" ".repeat(label.length)}${line}`)];
  };
  const { settings } = entry;
  const dials =
    settings &&
    `temperature ${settings.temperature}, seed ${settings.seed}, at most ${settings.maxTokens} tokens, ` +
      `thinking ${settings.thinking}`;
  return [
    `${bold(`${index + 1}. ${entry.kind}`, colors)} ${oneLine(entry.title)}`.trimEnd(),
    ...field("model", entry.model),
    ...field("system", entry.system),
    ...(entry.context ?? []).flatMap(({ role, content }) => field(role, content)),
    ...field("prompt", entry.prompt),
    ...field("thinking", entry.thinking),
    ...field("answer", entry.answer),
    ...field("note", entry.note),
    ...field("settings", dials),
    ...field("finished", entry.finishReason ?? undefined),
  ];
}

function depthOf(entries: readonly Entry[], index: number): number {
  const parents = new Map(entries.map(({ id, parent }) => [id.toLowerCase(), parent?.toLowerCase()]));
  let depth = 0;
  // Bounded, because a service's data might contain cycles.
  for (
    let at = parents.get((entries[index] as Entry).id.toLowerCase());
    at !== undefined && depth < entries.length;
    at = parents.get(at)
  ) {
    depth += 1;
  }
  return depth;
}

function many(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function day(time: string): string {
  return oneLine(time).slice(0, 10);
}
