/** The bounds of what tools take, written out by hand: the last value that is asked for, and the first that is refused. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ResearchError, TimeoutError } from "../../src/client/index.js";
import { mayDraft } from "../../src/mcp/index.js";
import { begin, call, closeAll, lab, refused, research, stand } from "./stand-in.js";

test.before.each(begin);
test.after(closeAll);

const id = "0123456789abcdef0123456789abcdef";
const uuid = "12345678-1234-4234-8234-123456789abc";
const text = (characters: number) => "x".repeat(characters);

const bounds: Array<
  [tool: string, input: object, field: string, within: unknown[], beyond: [unknown, string][]]
> = [
  [
    "lab_jobs",
    {},
    "limit",
    [1, 100],
    [
      [0, "at least 1, got 0"],
      [101, "at most 100, got 101"],
    ],
  ],
  [
    "lab_job",
    { id },
    "wait_seconds",
    [0, 0.5, 50],
    [
      [-1, "at least 0, got -1"],
      [50.5, "at most 50, got 50.5"],
    ],
  ],
  ["lab_job", { id }, "pointer", ["", text(200)], [[text(201), "at most 200 characters, got 201"]]],
  ["lab_job", { id, pointer: "/id" }, "offset", [0, 1e9], [[-1, "at least 0, got -1"]]],
  ["lab_artifacts", { id }, "name", [text(200)], [[text(201), "at most 200 characters, got 201"]]],
  [
    "serving_generate",
    { prompt: "a" },
    "max_tokens",
    [1, 4096],
    [
      [0, "at least 1, got 0"],
      [4097, "at most 4096, got 4097"],
    ],
  ],
  [
    "serving_generate",
    { prompt: "a" },
    "temperature",
    [0, 2],
    [
      [-0.1, "at least 0, got -0.1"],
      [2.1, "at most 2, got 2.1"],
    ],
  ],
  [
    "serving_generate",
    { prompt: "a" },
    "seed",
    [0, 2_147_483_647],
    [
      [-1, "at least 0"],
      [2_147_483_648, "at most 2147483647"],
    ],
  ],
  ["serving_generate", {}, "prompt", ["a"], [["", "must not be empty"]]],
  [
    ...["serving_generate", {}, "messages"],
    ...[[[{ role: "user", content: "a" }], Array(100).fill({ role: "user", content: "a" })]],
    [
      [[], "at least 1 entry, got 0"],
      [Array(101).fill({ role: "user", content: "a" }), "at most 100 entries, got 101"],
    ],
  ] as never,
  ["list_studies", {}, "query", ["", text(160)], [[text(161), "at most 160 characters, got 161"]]],
  [
    "list_studies",
    {},
    "limit",
    [1, 50],
    [
      [0, "at least 1, got 0"],
      [51, "at most 50, got 51"],
    ],
  ],
  [
    "list_studies",
    {},
    "offset",
    [0, 10_000],
    [
      [-1, "at least 0, got -1"],
      [10_001, "at most 10000, got 10001"],
    ],
  ],
  [
    "get_discussion",
    { id: uuid },
    "offset",
    [0, 10_000],
    [
      [-1, "at least 0, got -1"],
      [10_001, "at most 10000, got 10001"],
    ],
  ],
  [
    "get_study",
    { id: uuid },
    "version",
    [1, 999_999_999],
    [
      [0, "at least 1, got 0"],
      [1_000_000_000, "at most 999999999"],
    ],
  ],
  [
    "get_study",
    { id: uuid },
    "entry_offset",
    [0, 200],
    [
      [-1, "at least 0, got -1"],
      [201, "at most 200, got 201"],
    ],
  ],
  ["get_study", { id: uuid }, "pointer", [text(200)], [[text(201), "at most 200 characters, got 201"]]],
  ["get_study", { id: uuid, pointer: "/title" }, "offset", [0, 1e9], [[-1, "at least 0, got -1"]]],
];

for (const [tool, input, field, within, beyond] of bounds) {
  test(`${tool}: ${field}`, async () => {
    const client = tool.startsWith("lab") || tool.startsWith("serving") ? await lab() : await research();
    for (const value of within) {
      stand.calls.length = 0;
      await call(client, tool, { ...input, [field]: value });
      assert.ok(stand.calls.length > 0, `${JSON.stringify(value)} is asked for`);
    }
    stand.calls.length = 0;
    for (const [value, sentence] of beyond) {
      assert.match(await refused(client, tool, { ...input, [field]: value }), `${field}: ${sentence}`);
    }
    assert.equal(stand.calls, []);
  });
}

test("the start waits ten seconds for the token's permissions", async () => {
  const { timeout } = AbortSignal;
  const { signal } = new AbortController();
  const limits: number[] = [];
  AbortSignal.timeout = (ms) => {
    limits.push(ms);
    return signal;
  };
  const given: unknown[] = [];
  const maySaveDrafts = async (options: { signal?: AbortSignal } = {}) => {
    given.push(options.signal);
    return true;
  };
  try {
    assert.ok(await mayDraft({ maySaveDrafts }, "1", () => {}));
  } finally {
    AbortSignal.timeout = timeout;
  }
  assert.equal([limits, given.length, given[0] === signal], [[10_000], 1, true]);
});

test("a draft may be saved if the variable is exactly 1 and the token allows it", async () => {
  const told = async (allowed: string | undefined, may: () => Promise<boolean>) => {
    const why: string[] = [];
    let asked = 0;
    const maySaveDrafts = ({ signal }: { signal?: AbortSignal } = {}) => {
      asked += 1;
      assert.instance(signal, AbortSignal);
      return may();
    };
    return [await mayDraft({ maySaveDrafts }, allowed, (text) => why.push(text)), asked, ...why];
  };
  assert.equal(await told("1", async () => true), [true, 1]);
  assert.equal(await told("1", async () => false), [false, 1, "the token lacks the scope drafts:write."]);
  for (const allowed of [undefined, "", "0", "true", " 1", "1 "]) {
    assert.equal(await told(allowed, async () => true), [false, 0], allowed);
  }
  for (const [error, sentence] of [
    [new ResearchError("Refused."), "Refused."],
    [new TimeoutError("Too late."), "Too late."],
    [new TypeError("secret"), "the service did not return the token's permissions."],
  ] as const) {
    assert.equal(await told("1", () => Promise.reject(error)), [false, 1, sentence]);
  }
});

test.run();
