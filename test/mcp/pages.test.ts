import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { ResearchClient } from "../../src/client/index.js";
import type { StudyPackage } from "../../src/contracts/studies/index.js";
import { researchServer } from "../../src/mcp/index.js";
import { revealAll } from "../../src/mcp/reveal.js";
import { packages } from "../studies/support/packages.js";
import { fc } from "../support/fc.js";
import { type ToolResult, unfence } from "./session.js";

/** Comments that the service gives in pages of 40, each long enough that a result holds fewer. */
const comments = Array.from({ length: 90 }, (_, index) => ({
  id: `12345678-1234-4234-8234-${String(index).padStart(12, "0")}`,
  parent_id: null,
  author: { name: "A" },
  created_at: "2026-01-01T00:00:00.000Z",
  body: `${index} ${"word ".repeat(400)}`,
}));

const id = "12345678-1234-4234-8234-123456789abc";
let study: StudyPackage;
let client: Client;

test.before(async () => {
  // As much of the client as get_study needs; the real one has its own tests, and the two are tested together.
  const research = {
    getStudy: async () => ({
      id,
      visibility: "published",
      version: 1,
      author: { name: "A" },
      created_at: "2026-01-01T00:00:00.000Z",
      published_at: "2026-01-01T00:00:00.000Z",
      url: "https://localhost/",
      package_sha256: "0".repeat(64),
      package: study,
    }),
    getDiscussion: async (_id: string, { offset = 0 }: { offset?: number }) => ({
      study_id: id,
      comments: comments.slice(offset, offset + 40),
      upvotes: 0,
      total: comments.length,
      offset,
      next_offset: offset + 40 < comments.length ? offset + 40 : null,
    }),
  } as unknown as ResearchClient;
  client = new Client({ name: "test", version: "1" });
  const [near, far] = InMemoryTransport.createLinkedPair();
  await researchServer(research, { drafts: false }).connect(far);
  await client.connect(near);
});
test.after(() => client.close());

interface Page {
  package?: Record<string, unknown>;
  entries: Record<string, unknown>[];
  next_entry_offset: number | null;
  cut: { pointer: string; total: number; shown: number }[];
  piece: { value: unknown; next_offset: number | null; total: number };
}

async function getStudy(words: object): Promise<Page> {
  const result = (await client.callTool({ name: "get_study", arguments: { id, ...words } })) as ToolResult;
  assert.not(result.isError);
  const { untrusted, notice, hidden_characters, ...data } = result.structuredContent;
  assert.ok(untrusted && notice !== "" && hidden_characters >= 0);
  assert.equal(unfence(result.content[0]!.text).data, data);
  return data;
}

/** Puts what a cut left out into its place, piece by piece. */
async function completed(root: unknown, { pointer, shown, total }: Page["cut"][number]): Promise<void> {
  const names = pointer.slice(1).split("/");
  const last = names.pop() as string;
  const parent = names.reduce((value, name) => value[name] as never, root as Record<string, unknown>);
  for (let offset: number | null = shown; offset !== null; ) {
    const { piece }: Page = await getStudy({ pointer, offset });
    assert.is(piece.total, total);
    const before = parent[last] as string | unknown[];
    parent[last] =
      typeof before === "string" ? before + piece.value : [...before, ...(piece.value as unknown[])];
    offset = piece.next_offset;
  }
}

test("following next_entry_offset and cut reads the whole package", async () => {
  const stretched = fc
    .tuple(
      packages,
      // Longer than a page of 40,000 characters, and than a piece of 12,000, in each of the texts.
      fc.constantFrom(0, 0, 300, 3000, 9000),
      fc.constantFrom("word ", "\u202e", "東😀", '"\\\n'),
    )
    .map(([sample, times, text]) => {
      const copy = structuredClone(JSON.parse(JSON.stringify(sample))) as StudyPackage;
      copy.finding += text.repeat(times);
      for (const entry of copy.entries) {
        if (entry.answer !== undefined) entry.answer += text.repeat(times);
        if (entry.context !== undefined && entry.context.length > 0) {
          entry.context = Array.from({ length: 1 + (times % 199) }, () => entry.context![0]!);
        }
      }
      return copy;
    });
  await fc.assert(
    fc.asyncProperty(stretched, async (sample) => {
      study = sample;
      const first = await getStudy({});
      const whole: Record<string, unknown> & { entries: unknown[] } = { ...first.package, entries: [] };
      const cuts: Page["cut"] = [];
      for (let page: Page | null = first; page !== null; ) {
        whole.entries.push(...page.entries);
        cuts.push(...page.cut);
        page =
          page.next_entry_offset === null ? null : await getStudy({ entry_offset: page.next_entry_offset });
      }
      // Outer arrays first: what they leave out comes as pieces of its own.
      for (const cut of cuts.sort((a, b) => a.pointer.length - b.pointer.length)) await completed(whole, cut);
      const { value } = revealAll(study);
      assert.equal(whole, JSON.parse(JSON.stringify(value)));
    }),
    { numRuns: 40, endOnFailure: true },
  );
});

test("a page of comments that does not fit leads to what it left out", async () => {
  const read: string[] = [];
  let calls = 0;
  for (let offset: number | null = 0; offset !== null; calls++) {
    const result = (await client.callTool({
      name: "get_discussion",
      arguments: { id, offset },
    })) as ToolResult;
    const page: { comments: { id: string }[]; next_offset: number | null } = result.structuredContent;
    read.push(...page.comments.map((comment) => comment.id));
    offset = page.next_offset;
  }
  assert.equal(
    read,
    comments.map((comment) => comment.id),
  );
  assert.ok(calls > 3, `${calls} pages: every one of the service's fitted`);
});

test.run();
