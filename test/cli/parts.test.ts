/** What the command line's small functions say and take: values of flags, exit codes, paths, events of services. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CommanderError } from "commander";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { demoPicture } from "../../src/cli/commands/demo-picture.js";
import { jobFile } from "../../src/cli/commands/report.js";
import { serveReport } from "../../src/cli/commands/serve-report.js";
import { safeLines } from "../../src/cli/commands/study-client.js";
import { printJob } from "../../src/cli/conduct.js";
import { editorCommand } from "../../src/cli/editor.js";
import { exitCodeOf, sentenceOf, UsageError } from "../../src/cli/exit-code.js";
import { deviceNames, rpcServers } from "../../src/cli/model-options.js";
import { leadingTo, opener } from "../../src/cli/open-browser.js";
import {
  collect,
  headerKey,
  integerBetween,
  layerList,
  loraList,
  numberBetween,
  originList,
  shareList,
} from "../../src/cli/options.js";
import { shortPath, unwritable, watchOutput } from "../../src/cli/output.js";
import { makeFolder } from "../../src/cli/run-experiment.js";
import { answers, origin } from "../../src/cli/service-address.js";
import { stopSignal } from "../../src/cli/stop-signal.js";
import { TaplineError, TimeoutError } from "../../src/client/errors.js";
import { InvalidInput } from "../../src/contracts/invalid-input.js";
import { UserError } from "../../src/contracts/user-error.js";
import { inspectJob } from "../report/jobs.js";
import { saying } from "../support/saying.js";
import { capturing, command } from "./in-process.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-cli-parts-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

/** Texts with what they are read as, and texts that are refused, with the sentence for all of them. */
function reads<T>(
  read: (text: string) => T,
  good: [text: string, value: T][],
  bad: string[],
  sentence: string,
) {
  for (const [text, value] of good) assert.equal(read(text), value, text);
  for (const text of bad) assert.throws(() => read(text), saying(sentence), text);
}

test("numbers within bounds, both included, and nothing else", () => {
  const whole = "It must be a whole number between 2 and 10.";
  reads(
    integerBetween(2, 10),
    [
      ["2", 2],
      ["10", 10],
      ["007", 7],
    ],
    ["1", "11", "", " 3", "3.0", "-3", "+3", "1e1", "٣"],
    whole,
  );
  const any = "It must be a number between -1 and 2.5.";
  reads(
    numberBetween(-1, 2.5),
    [
      ["-1", -1],
      ["2.5", 2.5],
      ["0", 0],
      [" 1e-3 ", 0.001],
    ],
    ["-1.01", "2.51", "", "  ", "x", "NaN", "Infinity"],
    any,
  );
});

test("keys, names, shares, adapters and origins", () => {
  reads(
    headerKey,
    [["k!~", "k!~"]],
    ["", "a b", "é", "a\n"],
    "It must consist of printable ASCII characters without spaces.",
  );
  reads((text) => collect(text, ["a"]), [["b", ["a", "b"]]], [""], "It must not be empty.");
  assert.equal(collect("b"), ["b"]);
  reads(
    shareList,
    [
      ["3,1", [3, 1]],
      ["0, 0.5", [0, 0.5]],
      [`${"1,".repeat(127)}1`, Array(128).fill(1)],
    ],
    ["", "3,", "0", "0,0", "3,-1", "a", `${"1,".repeat(128)}1`],
    "Write numbers separated by commas, such as 3,1.",
  );
  assert.equal(loraList("a.gguf:0.5", loraList("C:b.gguf")), [
    { path: "C:b.gguf", scale: 1 },
    { path: "a.gguf", scale: 0.5 },
  ]);
  assert.equal(loraList("a:-2"), [{ path: "a", scale: -2 }]);
  assert.throws(() => loraList(""), saying("It must be a .gguf file."));
  assert.equal(originList("https://b.example", ["*"]), ["*", "https://b.example"]);
  assert.throws(() => originList("b.example"), saying("It must be an origin such as http://localhost:3000"));
  reads(
    deviceNames,
    [
      ["CUDA0, CUDA1", ["CUDA0", "CUDA1"]],
      ["none", ["none"]],
    ],
    ["", "CUDA0,", "none,CUDA0"],
    'Write names separated by commas, such as "CUDA0,CUDA1", or "none".',
  );
  assert.equal(rpcServers("10.0.0.2:50052"), [{ host: "10.0.0.2", port: 50_052 }]);
  assert.throws(() => rpcServers("nowhere"), saying("nowhere"));
  reads(
    origin,
    [
      ["8123", "http://127.0.0.1:8123"],
      ["lab.example:80", "http://lab.example"],
      ["my-host.local:8123", "http://my-host.local:8123"],
      ["http://[::1]:8980/", "http://[::1]:8980"],
    ],
    ["", "localhost", "https://a:1", "http://a:1/lab", "http://a:1/?x", "http://a:1/#x", "a b:1", "99999"],
    "It must be an address such as http://127.0.0.1:8980, or a port.",
  );
  assert.equal(layerList("0-7"), [0, 1, 2, 3, 4, 5, 6, 7], "eight are not too many");
  assert.equal(layerList("255"), [255]);
});

test("an origin is a scheme and a host, as browsers send it", () => {
  for (const [text, read] of [
    ["*", "*"],
    ["http://localhost:3000", "http://localhost:3000"],
    ["https://A.example/", "https://a.example"],
    ["http://[::1]:80", "http://[::1]"],
  ] as const)
    assert.equal(originList(text), [read]);
  for (const text of [
    "",
    "localhost:3000",
    "ftp://a.example",
    "https://a.example/b",
    "https://a.example/?",
    "https://me@a.example",
    "**",
    "null",
  ])
    assert.throws(
      () => originList(text),
      saying(`It must be an origin such as http://localhost:3000, or *, got ${text}.`),
    );
});

test("errors whose sentence is for a person, and the exit code of each", () => {
  const coded = (message: string, options: object) => new TaplineError(message, options);
  for (const [error, code, told] of [
    [new UsageError("a"), 2, "a"],
    [new UserError("a"), 1, "a"],
    [new InvalidInput("b", "is wrong."), 2, "b: is wrong."],
    [new TimeoutError("a"), 3, "a"],
    [coded("a", { status: 400 }), 2, "a"],
    [coded("a", { status: 404 }), 1, "a"],
    [coded("a", { status: 500 }), 1, "a"],
    [coded("a", { status: 502 }), 1, "a"],
    [coded("a", { status: 503 }), 3, "a"],
    [coded("a", { cause: { code: "ECONNREFUSED" } }), 3, "a"],
    [coded("a", { status: 500, cause: { code: "ECONNREFUSED" } }), 1, "a"],
    [coded("a", { cause: new Error("no code") }), 1, "a"],
    ["a text", 1, "a text"],
    [new CommanderError(0, "x", "a"), 0, undefined],
    [new CommanderError(1, "x", "a"), 2, undefined],
  ] as [unknown, number, string | undefined][]) {
    assert.is(exitCodeOf(error), code, `${error}`);
    if (told !== undefined) assert.is(sentenceOf(error), told);
  }
  assert.equal([exitCodeOf(undefined), exitCodeOf(null)], [1, 1]);
  const fault = new TypeError("x is undefined");
  assert.is(sentenceOf(fault), fault.stack);
  assert.is(exitCodeOf(fault), 1);
  fault.stack = undefined;
  assert.is(sentenceOf(fault), "x is undefined");
});

test("whether one of ours answers: silence and refusals are a no, faults are faults", async () => {
  assert.equal([await answers(async () => true), await answers(async () => false)], [true, false]);
  for (const error of [new TaplineError("Nothing listens."), new TimeoutError("Silence.")]) {
    assert.is(await answers(() => Promise.reject(error)), false);
  }
  const fault = new TypeError("x");
  assert.is(await answers(() => Promise.reject(fault)).catch((error) => error), fault);
});

test("paths are as short as they can be said; what cannot be written is a sentence", () => {
  assert.equal(
    ["/a/b/c", "/a/b", "/a/x", "/a/b/..c"].map((path) => shortPath(path, "/a/b")),
    ["c", "/a/b", "/a/x", "/a/b/..c"],
  );
  const error = Object.assign(new Error("x"), { code: "ENOSPC", syscall: "write" });
  const told = unwritable("/a", error) as Error;
  assert.equal([told.name, told.message], ["UserError", "Cannot write /a (ENOSPC); see --out."]);
  const other = new Error("x");
  assert.is(unwritable("/a", other), other);
});

test("a created folder is removed with its contents; an existing one remains", async () => {
  const path = join(folder, "made", "deep");
  const made = await makeFolder(path);
  writeFileSync(join(path, "file"), "");
  const again = await makeFolder(path);
  await again.undo();
  assert.is(await jobFile(join(path, "file")), join(path, "file"));
  await made.undo();
  assert.is(await jobFile(join(folder, "made")), undefined);
  const below = makeFolder(join(folder, "file", "x"));
  writeFileSync(join(folder, "file2"), "");
  await (await below).undo();
  const refused = await makeFolder(join(folder, "file2", "x")).catch((error: Error) => error.message);
  assert.is(refused, `Cannot write to ${join(folder, "file2", "x")} (ENOTDIR); see --out.`);
});

test("a job's file is job.json, else report.json, of a folder", async () => {
  const sentence = `${folder} has no job.json: it is not an experiment's output folder.`;
  assert.is(await jobFile(folder).catch((error: Error) => error.message), sentence);
  writeFileSync(join(folder, "report.json"), "{}");
  assert.is(await jobFile(folder), join(folder, "report.json"));
  writeFileSync(join(folder, "job.json"), "{}");
  assert.is(await jobFile(folder), join(folder, "job.json"));
});

test("text of other people is safe in a terminal, line by line", () => {
  assert.equal(safeLines("a\tb\r\nc\rd\n\u202ee\u001b[2J\u{e0041}"), [
    "a  b",
    "c<U+000D>d",
    "<U+202E>e<U+001B>[2J<U+E0041>",
  ]);
});

test("a browser is opened where one would be seen", () => {
  const display = { DISPLAY: ":0" };
  for (const [environment, platform, expected] of [
    [{}, "darwin", ["open"]],
    [{}, "win32", ["explorer.exe"]],
    [{}, "linux", undefined],
    [{ DISPLAY: "" }, "linux", undefined],
    [display, "linux", ["xdg-open"]],
    [{ WAYLAND_DISPLAY: "wayland-0" }, "linux", ["xdg-open"]],
    [{ ...display, WAYLAND_DISPLAY: "" }, "linux", undefined],
    [{ ...display, SSH_CONNECTION: "1" }, "linux", undefined],
    [{ SSH_CONNECTION: "1" }, "darwin", undefined],
    [{ ...display, WSL_DISTRO_NAME: "x" }, "linux", undefined],
  ] as [NodeJS.ProcessEnv, NodeJS.Platform, string[] | undefined][]) {
    assert.equal(opener(environment, platform), expected, JSON.stringify([environment, platform]));
  }
  const page = leadingTo("http://127.0.0.1:1/x#y");
  assert.match(page, '<meta http-equiv="refresh" content="0;url=http://127.0.0.1:1/x#y">');
  assert.match(page, '<meta name="referrer" content="no-referrer">');
});

test("the editor that the environment names", () => {
  assert.is(editorCommand({ VISUAL: "code -w", EDITOR: "ed" }), "code -w");
  assert.is(editorCommand({ VISUAL: "", EDITOR: "ed" }), "ed");
  assert.throws(() => editorCommand({}), saying("No terminal or editor: set VISUAL or EDITOR"));
});

test("the server prints one line when ready and one per problem", async () => {
  const info = { id: "m", architecture: "llama", quantization: "Q8_0", slots: 4, slotContext: 8192 } as never;
  const url = "http://127.0.0.1:1";
  const told = async (json: boolean) =>
    capturing(() => {
      const { event } = serveReport(json, "m");
      event({ event: "loading", stage: "weights", fraction: 0.456 });
      event({ event: "ready", url, info, backend: "cpu" });
      event({ event: "ready", url, info: { ...(info as object), slots: 1 } as never, backend: "cpu" });
      event({ event: "warning", sentence: "Careful." });
      event({ event: "crashed", sentence: "It fell." });
      event({ event: "fault", line: "Error: x" });
    });
  const plain = await told(false);
  assert.is(
    plain.stdout,
    `tapline serve is ready at ${url} (m, llama Q8_0, on cpu, 4 slots of 8192 tokens)\n` +
      `tapline serve is ready at ${url} (m, llama Q8_0, on cpu, 1 slot of 8192 tokens)\n`,
  );
  assert.is(plain.stderr, "tapline: Careful.\ntapline: It fell. Restarting it.\nError: x\n");
  const lines = (await told(true)).stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.equal(
    lines.map(({ event }) => event),
    ["loading", "ready", "ready", "warning", "crashed", "fault"],
  );
  for (const { time } of lines) assert.match(time, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  assert.equal([lines[0].fraction, lines[1].info, lines[4].sentence], [0.456, info, "It fell."]);
});

test("the first signal ends gracefully, the second at once; SIGHUP may differ", async () => {
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const before = signals.map((signal) => process.listeners(signal));
  const { exit } = process;
  const codes: unknown[] = [];
  process.exit = ((code: unknown) => void codes.push(code)) as typeof exit;
  const send = (signal: NodeJS.Signals) => process.listeners(signal).at(-1)?.(signal);
  try {
    for (const signal of signals) {
      const stopped = stopSignal();
      send(signal);
      assert.is(await stopped, signal);
      send("SIGHUP");
      assert.equal(codes.splice(0), [], "a terminal that is closed may say so twice");
      send("SIGINT");
      send("SIGTERM");
      assert.equal(codes.splice(0), [130, 143]);
    }
    let dealtWith = true;
    const stopped = stopSignal(() => dealtWith);
    send("SIGHUP");
    send("SIGTERM");
    assert.equal([await stopped, codes.length], ["SIGTERM", 0], "it was the first that asked");
    const left = stopSignal(() => dealtWith);
    dealtWith = false;
    send("SIGHUP");
    assert.is(await left, "SIGHUP");
  } finally {
    process.exit = exit;
    for (const [at, signal] of signals.entries()) {
      process.removeAllListeners(signal);
      for (const listener of before[at]!) process.on(signal, listener);
    }
  }
});

test("whoever reads no more is no loss: a pipe's end, a terminal that is gone", async () => {
  const told = await capturing(() => {
    watchOutput();
    for (const code of ["EPIPE", "ECONNRESET", "EIO", "ERR_STREAM_DESTROYED"])
      process.stdout.emit("error", Object.assign(new Error(code), { code }));
  });
  assert.equal(told, { code: 0, stdout: "", stderr: "" });
});

test("a router has its backends from one place", async () => {
  for (const words of [[], ["--backend", "http://127.0.0.1:1", "--config", "x.json"]]) {
    const { code, stderr } = await command(["router", ...words]);
    const sentence = "Choose the backends with either --backend URL (repeatable) or --config FILE.";
    assert.equal([code, stderr], [2, `tapline: ${sentence}\n`]);
  }
});

test("a cache without models, and with some", async () => {
  const before = process.env.HF_HUB_CACHE;
  process.env.HF_HUB_CACHE = join(folder, "cache");
  try {
    const { code, stdout } = await command(["models"]);
    assert.equal([code, stdout], [
      ...[0, `No GGUF models in the cache ${join(folder, "cache")}. Download one with tapline pull.\n`],
    ] as [number, string]);
    // What is left of a download goes with its repository: 3 bytes.
    const blobs = join(folder, "cache", "models--tiny--demo", "blobs");
    mkdirSync(blobs, { recursive: true });
    writeFileSync(join(blobs, `${"a".repeat(64)}.tapline.incomplete`), "abc");
    assert.match(
      (await command(["models"])).stdout,
      "tiny/demo has an unfinished download of 3 B: tapline pull resumes it, tapline rm removes it.\n",
    );
    const removed = await command(["rm", "tiny/demo"]);
    assert.equal(removed, {
      ...{ code: 0, stderr: "" },
      stdout: "Deleted an unfinished download.\nFreed 3 B.\n",
    });
    assert.equal(readdirSync(join(folder, "cache")), []);
    // The head of a GGUF with one tensor of so many elements, whose weights nobody looks at.
    for (const [name, elements] of [
      ["b", 1_000_000_000],
      ["m", 494_000_000],
      ["s", 1_480_000],
    ] as const) {
      const head = Buffer.alloc(61);
      head.write("GGUF");
      head.writeUInt32LE(3, 4);
      head.writeBigUInt64LE(1n, 8); // tensors, and no values
      head.writeBigUInt64LE(1n, 24);
      head.write("w", 32);
      head.writeUInt32LE(1, 33);
      head.writeBigUInt64LE(BigInt(elements), 37);
      const snapshot = join(folder, "cache", `models--tiny--${name}`, "snapshots", "a".repeat(40));
      mkdirSync(snapshot, { recursive: true });
      writeFileSync(join(snapshot, "x.gguf"), head);
    }
    const table = (await command(["models"])).stdout;
    assert.equal(
      [...table.matchAll(/^tiny\/(.)\/x\.gguf +(\S+ [BM]) /gm)].map(([, name, size]) => [name, size]),
      [
        ["b", "1.0 B"],
        ["m", "494 M"],
        ["s", "1.5 M"],
      ],
      table,
    );
  } finally {
    if (before === undefined) delete process.env.HF_HUB_CACHE;
    else process.env.HF_HUB_CACHE = before;
  }
});

test("what the demo saw", () => {
  const layer = (index: number) => ({ layer: index, norms: [1, 2], predictions: [] });
  const result = {
    tokens: ["a", "b"],
    layers: [layer(0), layer(7)],
    next_tokens: [],
    note: "A note.",
    provenance: { quantization: "F32", n_embd: 128 },
  };
  const report = {
    model: { model: "tapline-demo", architecture: "llama", n_layer: 8, n_embd: 128, backend: "cpu" },
    chat: { question: "What?", thinking: " ", answer: "Paris", finish_reason: "stop" },
    job: { config: { prompt: "The" }, result },
    capture: { layers: [{ layer: 3 }, { layer: 7 }] },
    captured_while_answering: true,
    largest_norm_difference: 0,
    files: { activations: "/here/out/activations.npz", report: "/else/report.json" },
  };
  const drawn = (more: object) =>
    demoPicture({ ...report, ...more } as never, { width: 200, colors: "none" }, "/here").split("\n");
  const row = (lines: string[], label: string) => lines.find((line) => line.startsWith(label))?.slice(13);
  const plain = drawn({});
  assert.is(row(plain, "Model"), "tapline-demo: llama, 8 blocks, 128 wide, F32, on cpu");
  assert.equal(
    [row(plain, "Asked"), row(plain, "Thought"), row(plain, "Answered")],
    ["What?", undefined, "Paris"],
  );
  assert.is(
    row(plain, "Resident"),
    "captured the serving model while it was answering (layers 3, 7); its norms and those of the isolated job are " +
      "bit-identical.",
  );
  assert.is(row(plain, "Written"), "out/activations.npz (layer_0 … layer_7: float32 [1, 2, 128])");
  assert.is(plain[plain.findIndex((line) => line.startsWith("Written")) + 1]?.trim(), "/else/report.json");
  const other = drawn({
    chat: { ...report.chat, thinking: "Hm.", finish_reason: "length" },
    captured_while_answering: false,
    largest_norm_difference: 0.00123,
    files: null,
    job: { ...report.job, result: { ...result, layers: [layer(5)] } },
  });
  assert.equal(
    [row(other, "Thought"), row(other, "Answered"), row(other, "Written")],
    ["Hm.", "Paris …", undefined],
  );
  assert.match(
    row(other, "Resident")!,
    "captured the serving model right after its answer (layers 3, 7); its norms and those",
  );
  assert.match(row(other, "Resident")!, "differ by at most 0.1 %.");
  const one = drawn({ job: { ...report.job, result: { ...result, layers: [layer(5)] } } });
  assert.match(row(one, "Written")!, "(layer_5: float32 [1, 2, 128])");
});

test("a job is drawn in the requested form, followed by its files", async () => {
  const drawn = async (...[files, show]: [string[], "rank"?]) => {
    const job = { ...inspectJob(), model: "m", status: "completed" };
    const { stdout } = await capturing(() => printJob(job as never, files, show));
    return stdout;
  };
  const usual = await drawn([]);
  assert.match(usual, /^Logit lens {2}/m);
  assert.not.match(usual, /Written|has no rank/);
  // What it was not measured for is said in place of the grid.
  const ranked = await drawn([], "rank");
  assert.match(ranked, /^The result does not contain rank for every token\.$/m);
  assert.not.match(ranked, /^Logit lens {2}/m);
  assert.match(await drawn(["/a/b.npz", "/a/job.json"]), /\nSaved {8}\/a\/b\.npz\n {13}\/a\/job\.json\n$/);
});

test("the studies port must be 0 to 65535, checked before anything starts", async () => {
  for (const port of ["0", "65535"]) {
    const { code, stderr } = await command(["studies", "--port", port]);
    assert.equal([code, stderr.split(" (")[0]], [1, "tapline: Use either --dev"], port);
  }
  for (const port of ["-1", "65536", "1.5", "x"]) {
    const { code, stderr } = await command(["studies", "--port", port]);
    assert.is(code, 2);
    assert.match(stderr, "It must be a whole number between 0 and 65535.");
  }
});

test.run();
