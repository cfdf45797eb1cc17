import {
  appendFileSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import * as assert from "uvu/assert";
import { UserError } from "../../src/contracts/user-error.js";
import { Dictionaries } from "../../src/library/index.js";
import { decodeRows, encodeRows, NativeError } from "../../src/native/index.js";
import { TestRandom } from "../support/random.js";
import type { Case } from "./cases.js";

// Folders of dictionaries with something wrong in them, as a bad disk, a cut download or a hostile publisher leaves them.

/** Texts of JSON that no configuration has where they are put. */
const strangeValues = [
  ...["null", "true", "-1", "0", "1.5", "1e308", "1e400", '""', '"\\u0000\\u001b[31m"', "[]", "{}"],
  ...['"../../../etc/passwd"', '"__proto__"', '{"__proto__": {"k": 1}}', '"blocks.3.attn.hook_z"'],
  ...[`"${"long ".repeat(400)}"`, "[".repeat(30_000) + "]".repeat(30_000)],
];
const strangeNumbers = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff];

interface Mutation {
  name: string;
  /** Whether it can be done to such a file. */
  fits(path: string): boolean;
  apply(path: string, random: TestRandom, others: readonly string[]): void;
}

const every = () => true;
const isJson = (path: string) => path.endsWith(".json");
const isZip = (path: string) => /\.(npz|pth?)$/.test(path);
const isSafetensors = (path: string) => path.endsWith(".safetensors");
const isWeights = (path: string) => isZip(path) || isSafetensors(path);

function changed(path: string, change: (bytes: Buffer) => Buffer | undefined): void {
  const bytes = readFileSync(path);
  writeFileSync(path, change(bytes) ?? bytes);
}

/** A place among a file's bytes: near its ends, where its form is described, as often as anywhere. */
function somewhere(random: TestRandom, length: number): number {
  const near = random.below(Math.min(600, length));
  return [near, length - 1 - near, random.below(length)][random.below(3)] as number;
}

const mutations: readonly Mutation[] = [
  {
    name: "bytes",
    fits: every,
    apply: (path, random) =>
      changed(path, (bytes) => {
        for (let i = random.below(6); i >= 0 && bytes.length > 0; i--) {
          bytes[somewhere(random, bytes.length)] = random.below(256);
        }
        return undefined;
      }),
  },
  {
    name: "cut",
    fits: every,
    apply: (path, random) => changed(path, (bytes) => bytes.subarray(0, somewhere(random, bytes.length + 1))),
  },
  { name: "removed", fits: every, apply: (path) => rmSync(path) },
  {
    name: "a folder in its place",
    fits: every,
    apply: (path) => {
      rmSync(path);
      mkdirSync(path);
    },
  },
  {
    name: "more after its end",
    fits: every,
    apply: (path, random) =>
      appendFileSync(
        path,
        Buffer.from(Array.from({ length: 1 + random.below(200) }, () => random.below(256))),
      ),
  },
  {
    name: "another layout's file",
    fits: every,
    apply: (path, random, others) => copyFileSync(others[random.below(others.length)] as string, path),
  },
  {
    name: "a second file of weights",
    fits: isWeights,
    apply: (path, random, others) => {
      const other = others[random.below(others.length)] as string;
      copyFileSync(other, join(dirname(path), `${random.below(2) === 0 ? "" : "a-"}${basename(other)}`));
    },
  },
  {
    name: "a setting",
    fits: isJson,
    apply: (path, random) =>
      changed(path, (bytes) => {
        const value = strangeValues[random.below(strangeValues.length)] as string;
        return Buffer.from(withOneValue(bytes.toString(), value, random));
      }),
  },
  {
    name: "a tensor's description",
    fits: isSafetensors,
    apply: (path, random) =>
      changed(path, (bytes) => {
        const end = 8 + Number(bytes.readBigUInt64LE());
        const value = strangeValues[random.below(strangeValues.length)] as string;
        const head = Buffer.from(withOneValue(bytes.toString("utf8", 8, end), value, random));
        const length = Buffer.alloc(8);
        length.writeBigUInt64LE(BigInt(head.length));
        return Buffer.concat([length, head, bytes.subarray(end)]);
      }),
  },
  {
    name: "a length or a place in the archive",
    fits: isZip,
    apply: (path, random) =>
      changed(path, (bytes) => {
        const directory = bytes.readUInt32LE(bytes.length - 6);
        const at = Math.min(
          bytes.length - 4,
          directory + random.below(Math.max(1, bytes.length - directory - 4)),
        );
        bytes.writeUInt32LE(strangeNumbers[random.below(strangeNumbers.length)] as number, at);
        return undefined;
      }),
  },
  {
    name: "a non-finite number",
    fits: isSafetensors,
    apply: (path, random) =>
      changed(path, (bytes) => {
        const start = 8 + Number(bytes.readBigUInt64LE());
        const at = start + 4 * random.below(Math.max(1, Math.floor((bytes.length - start) / 4) - 1));
        bytes.writeFloatLE([Number.NaN, Number.POSITIVE_INFINITY][random.below(2)] as number, at);
        return undefined;
      }),
  },
  {
    name: "a call",
    fits: (path) => /\.pth?$/.test(path),
    apply: (path, random) =>
      changed(path, (bytes) => {
        // As long as what stood there, so that nothing else is wrong with the file.
        const name = random.below(2) === 0 ? "collections\nOrderedDict" : "torch._utils\n_rebuild_tensor_v2";
        const call = `posix\nsystem${"x".repeat(name.length)}`.slice(0, name.length);
        const at = bytes.indexOf(name);
        if (at !== -1) bytes.write(call, at, "latin1");
        return undefined;
      }),
  },
];

/** A text of JSON with one of its values replaced, by a text that need not be JSON. */
function withOneValue(text: string, value: string, random: TestRandom): string {
  const places: Array<{ in: Record<string, unknown>; key: string }> = [];
  const visit = (one: unknown): void => {
    if (typeof one !== "object" || one === null) return;
    for (const key of Object.keys(one)) {
      places.push({ in: one as Record<string, unknown>, key });
      visit((one as Record<string, unknown>)[key]);
    }
  };
  const whole = JSON.parse(text);
  visit(whole);
  const place = places[random.below(places.length)];
  if (place === undefined) return value;
  if (random.below(8) === 0) delete place.in[place.key];
  else place.in[place.key] = "@@here@@";
  return JSON.stringify(whole).replace('"@@here@@"', () => value);
}

function filesBelow(folder: string): string[] {
  return (readdirSync(folder, { recursive: true }) as string[])
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .sort();
}

export interface Tally {
  read: number;
  refused: number;
  /** Layouts that had at least one mutant refused. */
  layouts: Set<string>;
}

/**
 * Adds mutants of dictionaries to a library: each is refused in one sentence that leaves the one kept before as it is, or
 * becomes a dictionary that reads rows.
 * @param layouts what is changed, in turn
 * @param from mutants are numbered from it on: a number and the layouts make a mutant
 */
export async function tryMutants(
  folder: string,
  layouts: readonly Case[],
  { from, count }: { from: number; count: number },
): Promise<Tally> {
  const dictionaries = new Dictionaries(join(folder, "home"));
  const tally: Tally = { read: 0, refused: 0, layouts: new Set() };
  const weights = layouts.flatMap(({ path }) => filesBelow(path)).filter(isWeights);
  for (let number = from; number < from + count; number++) {
    const random = new TestRandom(number);
    const each = layouts[number % layouts.length] as Case;
    const place = join(folder, "mutant");
    rmSync(place, { recursive: true, force: true });
    cpSync(each.path, place, { recursive: true });
    const files = filesBelow(place);
    const path = files[random.below(files.length)] as string;
    const fitting = mutations.filter(({ fits }) => fits(path));
    const mutation = fitting[random.below(fitting.length)] as Mutation;
    mutation.apply(path, random, weights);
    const what = `mutant ${number}: ${each.name}, ${mutation.name} in ${basename(path)}`;
    const known = await stamp(dictionaries);
    const refusal = await dictionaries.add("mutant", place, { layer: each.claim, k: each.k }).then(
      () => undefined,
      (error: unknown) => error as Error,
    );
    if (refusal === undefined) {
      tally.read++;
      await checkReads(dictionaries, what);
      continue;
    }
    tally.refused++;
    tally.layouts.add(each.name);
    assert.ok(refusal instanceof UserError, `${what}: ${refusal.stack}`);
    assert.ok(/^[A-Z"a-z_][^\p{Cc}]{10,700}[.)]$/u.test(refusal.message), `${what}: ${refusal.message}`);
    assert.equal(await stamp(dictionaries), known, `${what}: saved dictionaries are unchanged`);
  }
  return tally;
}

async function stamp(dictionaries: Dictionaries) {
  return (await dictionaries.list()).map(({ name, sha256, created }) => [name, sha256, created]);
}

/** A loaded file is a dictionary: it has a description, and encodes and decodes rows, whatever its numbers. */
async function checkReads(dictionaries: Dictionaries, what: string): Promise<void> {
  const { stored, places } = await dictionaries.open("mutant");
  const { layer, n_embd: hidden, features, k } = stored;
  assert.ok(Number.isInteger(layer) && layer >= 0 && layer < 256, `${what}: block ${layer}`);
  assert.ok(k === null || (Number.isInteger(k) && k >= 1 && k <= features), `${what}: k ${k}`);
  const rows = Float32Array.from({ length: 3 * hidden }, (_, i) => Math.sin(i));
  try {
    const sparse = await encodeRows(places, rows, { threads: 1 });
    assert.is(sparse.pointers.length, 4, what);
    assert.ok(
      sparse.indices.every((index) => index >= 0 && index < features),
      what,
    );
    assert.is((await decodeRows(places, sparse, rows, { threads: 1 })).length, rows.length, what);
  } catch (error) {
    assert.ok(error instanceof NativeError, `${what}: ${(error as Error).stack}`);
  }
}
