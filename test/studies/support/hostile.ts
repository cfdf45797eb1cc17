import { createHash, randomUUID } from "node:crypto";
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";
import * as assert from "uvu/assert";
import {
  DraftCreated,
  ErrorBody,
  StudyEnvelope,
  type StudyPackage,
  StudyPage,
} from "../../../src/contracts/studies/index.js";
import { fc } from "../../support/fc.js";
import { testClock } from "./clock.js";
import { packages } from "./packages.js";
import { type Answer, startService } from "./service.js";

const shapes = new Map(
  [DraftCreated, ErrorBody, StudyEnvelope, StudyPage].map((schema) => [
    schema as TSchema,
    Compile(schema as TSchema),
  ]),
);

type Json = Record<string, unknown>;
type Mutation = [name: string, mutate: (study: StudyPackage, text: string) => string | Buffer];

function changed(change: (copy: Json & { entries: Json[]; model: Json }) => void): Mutation[1] {
  return (study) => {
    const copy = structuredClone(study) as unknown as Json & { entries: Json[]; model: Json };
    change(copy);
    return JSON.stringify(copy);
  };
}

/** Each makes a valid package invalid, whatever it holds. */
export const mutations: Mutation[] = [
  ...[
    "schemaVersion",
    "title",
    "question",
    "hypothesis",
    "method",
    "finding",
    "limitations",
    "license",
    "model",
    "omissions",
    "entries",
  ].flatMap((name): Mutation[] => [
    [`no ${name}`, changed((copy) => delete copy[name])],
    [
      `${name} null`,
      changed((copy) => {
        copy[name] = null;
      }),
    ],
    [
      `${name} wrong type`,
      changed((copy) => {
        copy[name] = typeof copy[name] === "number" ? "1" : 7;
      }),
    ],
  ]),
  [
    "unknown property",
    changed((copy) => {
      copy.Title = "x";
    }),
  ],
  [
    "many unknown properties",
    changed((copy) => {
      for (let index = 0; index < 12; index += 1) copy[`unknown ${index}`] = index;
    }),
  ],
  [
    "properties of other objects",
    changed((copy) => {
      const others = ["id", "parent", "kind", "role", "content", "seed", "temperature", "thinking", "name"];
      for (const name of others) copy[name] = null;
    }),
  ],
  [
    "half a million wrong entries",
    changed((copy) => {
      copy.entries = Array(490_000).fill(1);
    }),
  ],
  [
    "unknown in model",
    changed((copy) => {
      copy.model.id = 1;
    }),
  ],
  [
    "unknown in entry",
    changed((copy) => {
      (copy.entries[0] as Json).Kind = "note";
    }),
  ],
  [
    "long title",
    changed((copy) => {
      copy.title = "é".repeat(161);
    }),
  ],
  [
    "blank title",
    changed((copy) => {
      copy.title = " \u2003\t";
    }),
  ],
  [
    "long question",
    changed((copy) => {
      copy.question = "q".repeat(4001);
    }),
  ],
  [
    "long method",
    changed((copy) => {
      copy.method = "😀".repeat(8001);
    }),
  ],
  [
    "long finding",
    changed((copy) => {
      copy.finding = "f".repeat(100_001);
    }),
  ],
  [
    "many omissions",
    changed((copy) => {
      copy.omissions = Array(101).fill("x");
    }),
  ],
  [
    "long omission",
    changed((copy) => {
      copy.omissions = ["x".repeat(1001)];
    }),
  ],
  [
    "no entries",
    changed((copy) => {
      copy.entries = [];
    }),
  ],
  [
    "201 entries",
    changed((copy) => {
      copy.entries = Array.from({ length: 201 }, () => ({ id: randomUUID(), kind: "note", title: "" }));
    }),
  ],
  [
    "license",
    changed((copy) => {
      copy.license = "cc0-1.0";
    }),
  ],
  [
    "uuid version 9",
    changed((copy) => {
      (copy.entries[0] as Json).id = "12345678-1234-9234-8234-123456789abc";
    }),
  ],
  [
    "uuid variant c",
    changed((copy) => {
      (copy.entries[0] as Json).id = "12345678-1234-4234-c234-123456789abc";
    }),
  ],
  [
    "uuid and newline",
    changed((copy) => {
      (copy.entries[0] as Json).id = `${randomUUID()}\n`;
    }),
  ],
  [
    "same id twice",
    changed((copy) => {
      copy.entries.push({ ...copy.entries[0], id: String(copy.entries[0]?.id).toUpperCase() });
    }),
  ],
  [
    "own parent",
    changed((copy) => {
      (copy.entries[0] as Json).parent = copy.entries[0]?.id;
    }),
  ],
  [
    "absent parent",
    changed((copy) => {
      (copy.entries[0] as Json).parent = randomUUID();
    }),
  ],
  [
    "a ring",
    changed((copy) => {
      const ids = [randomUUID(), randomUUID()];
      copy.entries.push(...ids.map((id, index) => ({ id, kind: "note", title: "", parent: ids[1 - index] })));
    }),
  ],
  ...(
    [
      ["temperature", -0.1],
      ["temperature", 10.01],
      ["seed", 0.5],
      ["seed", 2 ** 53],
      ["maxTokens", 0],
      ["maxTokens", 1_000_001],
      ["thinking", "ON"],
      ["extra", 1],
    ] as const
  ).map(
    ([name, value]): Mutation => [
      `settings ${name} ${value}`,
      changed((copy) => {
        (copy.entries[0] as Json).settings = {
          temperature: 1,
          seed: 1,
          maxTokens: 1,
          thinking: "on",
          [name]: value,
        };
      }),
    ],
  ),
  [
    "role",
    changed((copy) => {
      (copy.entries[0] as Json).context = [{ role: "tool", content: "" }];
    }),
  ],
  ["duplicate key", (_study, text) => text.replace("{", '{"title":"first",')],
  ["duplicate key, escaped", (_study, text) => text.replace("{", '{"\\u0065ntries":[],')],
  ["1e400", (_study, text) => text.replace(/"schemaVersion":\s*1/, '"schemaVersion":1e400')],
  ["-1e400", (_study, text) => text.replace(/"schemaVersion":\s*1/, '"schemaVersion":-1e400')],
  ["trailing comma", (_study, text) => text.replace(/\}\s*$/, ",}")],
  ["cut off", (_study, text) => text.slice(0, -1)],
  ["twice", (_study, text) => text + text],
  ["too large", (_study, text) => text + " ".repeat(1_000_001 - Buffer.byteLength(text))],
  [
    "bad UTF-8",
    (_study, text) =>
      Buffer.concat([
        Buffer.from(text.slice(0, 1)),
        Buffer.from('"\xff":1,', "latin1"),
        Buffer.from(text.slice(1)),
      ]),
  ],
  [
    "surrogate in UTF-8",
    (_study, text) => Buffer.concat([Buffer.from(text), Buffer.from([0xed, 0xa0, 0x80])]),
  ],
  ["byte order mark", (_study, text) => `\ufeff${text}`],
  ["raw NUL", (_study, text) => text.replace('"title":', '"ti\0tle":')],
  ["deep", (_study, text) => text.replace("{", `{"x":${"[".repeat(40)}${"]".repeat(40)},`)],
];

const queries = fc.oneof(
  fc.webQueryParameters(),
  fc.string({ unit: "binary-ascii" }).map((text) => text.replace(/[\s#\0-\x20\x7f]/g, "%00")),
  fc
    .array(
      fc.tuple(
        fc.constantFrom("q", "limit", "offset", "Q", "limit%00", "q[]"),
        fc.constantFrom(
          "",
          "1",
          "01",
          "+1",
          "1e1",
          "-0",
          "0",
          "50",
          "51",
          "10000",
          "10001",
          "%ED%A0%80",
          "%F0%9F%98%80",
          "%00",
          "NaN",
          "a*",
          "%22OR",
          "'--",
          "(((",
          "٣",
        ),
      ),
      { maxLength: 4 },
    )
    .map((pairs) => pairs.map(([name, value]) => `${name}=${encodeURI(decodeSafely(value))}`).join("&")),
);

function decodeSafely(text: string): string {
  return /%/.test(text) ? text : decodeURIComponent(text);
}

/** Writes JSON as different clients do: indented, in another order, with escapes, with numbers in other forms. */
function spelled(study: StudyPackage, how: number): string {
  const shuffled = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(shuffled)
      : typeof value === "object" && value !== null
        ? Object.fromEntries(
            Object.entries(value)
              .reverse()
              .map(([key, item]) => [key, shuffled(item)]),
          )
        : value;
  let text = JSON.stringify(how & 1 ? shuffled(study) : study, null, how & 2 ? 2 : undefined);
  if (how & 4) {
    text = text.replace(
      /[\u0080-\uffff]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
  }
  if (how & 8) text = text.replace(/"schemaVersion":(\s*)1/, '"schemaVersion":$11.0e+0');
  return how & 16 ? `\r\n\t${text} \n` : text;
}

function follows(schema: TSchema, answer: Answer, about: string): void {
  assert.ok(
    shapes.get(schema)?.Check(answer.json),
    `${about}: ${answer.status} ${answer.text.slice(0, 300)}`,
  );
}

/**
 * Sends generated requests, half of them invalid: every valid package is accepted and comes back byte for byte,
 * every invalid one is 400 with code and field, every answer follows its schema, nothing is a 5xx.
 * @param rounds each makes four requests
 */
export async function hostileRounds(database: string, rounds: number, seed: number): Promise<void> {
  const clock = testClock();
  const service = await startService(database, { store: { dialect: clock.dialect } });
  let token = "";
  const studies = fc.sample(packages, { numRuns: rounds, seed });
  const asked = fc.sample(queries, { numRuns: rounds, seed });
  for (let round = 0; round < rounds; round += 1) {
    if (round % 200 === 0) token = (await service.token((await service.account(`A${round}`)).id)).token;
    // A day has ten drafts.
    clock.ms += 8_641_000;
    const study = studies[round] as StudyPackage;
    const body = spelled(study, (round * 7 + seed) % 32);
    const about = `seed ${seed}, round ${round}`;
    const saved = await service.api(token, "/api/v1/studies", { method: "POST", body });
    assert.is(saved.status, 201, `${about}: ${saved.text}`);
    follows(DraftCreated, saved, about);
    const read = await service.api(token, `/api/v1/studies/${saved.json.id}`);
    follows(StudyEnvelope, read, about);
    assert.ok(read.bytes.subarray(-Buffer.byteLength(body) - 1, -1).equals(Buffer.from(body)), about);
    const hash = (bytes: Buffer | string) => createHash("sha256").update(bytes).digest("hex");
    assert.is(read.headers["x-content-sha256"], hash(read.bytes));
    assert.is(read.json.package_sha256, hash(body));
    const [name, mutate] = mutations[round % mutations.length] as Mutation;
    const refused = await service.api(token, "/api/v1/studies", {
      method: "POST",
      body: mutate(study, JSON.stringify(study)),
    });
    assert.is(refused.status, 400, `${about}, ${name}: ${refused.text}`);
    follows(ErrorBody, refused, `${about}, ${name}`);
    assert.type(refused.json.field, "string", name);
    const query = asked[round] as string;
    const list = await service.api(token, `/api/v1/studies?${query}`);
    assert.ok(list.status === 200 || list.status === 400, `${about}: ?${query}: ${list.text}`);
    follows(list.status === 200 ? StudyPage : ErrorBody, list, `${about}: ?${query}`);
  }
  assert.equal(service.log, []);
  await service.close();
}
