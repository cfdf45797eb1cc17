/** The source checks of `npm run verify:llama`, on the pinned sources and on modified ones. */
import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ensureSource } from "../../scripts/build/source.js";
import {
  asCompiled,
  type Sources,
  sourceChecks,
  sourcesIn,
  withoutComments,
} from "../verify/llama/sources.js";
import { printTable, timed } from "../verify/llama/steps.js";

type Files = Record<string, string>;

const real = sourcesIn((await ensureSource({ env: { ...process.env, LLAMA_CPP_DIR: "" } })).dir);

/** The pinned sources with some files replaced or added. */
function changed(theirs: Files, ours: Files = {}): Sources {
  return {
    theirs: (path) => theirs[path] ?? real.theirs(path),
    list: (folder) => [
      ...new Set([...real.list(folder), ...Object.keys(theirs).filter((path) => path.startsWith(folder))]),
    ],
    ours: (path) => ours[path] ?? real.ours(path),
  };
}

function find(name: string, theirs: Files, ours: Files = {}): string[] {
  const check = sourceChecks.find((each) => each.name === name);
  assert.ok(check, name);
  return check.find(changed(theirs, ours));
}

/** A pinned file with one text replaced. */
function edited(path: string, from: string, to: string): Files {
  const text = real.theirs(path);
  assert.ok(text.includes(from), `${path} has "${from}"`);
  return { [path]: text.replace(from, to) };
}

const server = "tools/server/server-context.cpp";
const release = "void release() { if (task) { callback_on_reset(*this); reset(); } }";
const once = "queue_tasks.yield_to_queue([&]() { ret = llama_decode(ctx_tgt, batch_view); });";

test("all source checks hold for the pinned release", () => {
  for (const check of sourceChecks) assert.equal(check.find(real), [], check.name);
});

test("comments are removed, except inside string literals", () => {
  assert.is(
    withoutComments('a("// b"); // c()\n/* d()\n */ e(\'"\'); f("g")'),
    'a("// b");       \n      \n    e(\'"\'); f("g")',
  );
});

test("decode call holds for one call, comments ignored", () => {
  assert.equal(find("decode call", { [server]: `// llama_decode() is async\n${once}` }), []);
});

test("decode call differs for two calls, none, or another function", () => {
  assert.equal(find("decode call", { [server]: `${once}\n${once}` }), [
    `${server} calls llama_decode 2 times (lines 1, 2), not once: live requests see one call`,
  ]);
  assert.equal(find("decode call", { [server]: "yield_to_queue([&]() { llama_process(ctx, batch); });" }), [
    `${server} calls llama_decode 0 times, not once: live requests see one call`,
    `${server}:1 calls llama_process, which live requests do not see`,
  ]);
});

test("decode call expects llama_process with llama.cpp 0.6.0", () => {
  const slots = "native/engine/server_slots.cpp";
  const ours = {
    [slots]: asCompiled(readFileSync(new URL(`../../${slots}`, import.meta.url), "utf8"), "0.6.0"),
  };
  const process = "yield_to_queue([&]() { ret = llama_process(ctx_tgt, type, batch); });";
  assert.equal(find("decode call", { [server]: process }, ours), []);
  assert.equal(find("decode call", { [server]: `${process}\n${once}` }, ours), [
    `${server}:2 calls llama_decode, which live requests do not see`,
  ]);
});

test("asCompiled keeps the branch of the given version", () => {
  const text = "#if OTHER\na\n#else\nb\n#endif\n#if TAPLINE_LLAMA_CPP >= 600\nc\n#else\nd\n#endif\ne";
  assert.is(asCompiled(text, "0.5.9").replace(/\n+/g, " "), "#if OTHER a #else b #endif #else d #endif e");
  assert.is(
    asCompiled(text, "0.6.0").replace(/\n+/g, " "),
    "#if OTHER a #else b #endif #if TAPLINE_LLAMA_CPP >= 600 c #endif e",
  );
});

test("decode call differs outside yield_to_queue", () => {
  assert.equal(find("decode call", { [server]: "\nret = llama_decode(ctx_tgt, batch_view);" }), [
    `${server}:2 decodes outside of yield_to_queue, behind which slots are settled`,
  ]);
});

test("slot's end differs if the task is reset before the callback", () => {
  assert.equal(find("slot's end", { [server]: release }), []);
  const sentence = `${server}: release() must call callback_on_reset before it forgets the slot's task`;
  for (const body of [
    "void release() { reset(); callback_on_reset(*this); }",
    "void release() { task = nullptr; callback_on_reset(*this); reset(); }",
    "void release() { reset(); } void other() { callback_on_reset(*this); }",
  ]) {
    assert.equal(find("slot's end", { [server]: body }), [sentence], body);
  }
  assert.equal(find("slot's end", { [server]: "void end();" }), [`${server} has no release() of a slot`]);
});

test("memory kinds reports new and missing kinds", () => {
  const added = { "src/llama-memory-new.h": "class llama_memory_new : public llama_kv_cache {};" };
  assert.equal(find("memory kinds", added), [
    "llama_memory_new is a kind of memory that native/engine/slot_memory.cpp does not know",
  ]);
  const gone = edited(
    "src/llama-kv-cache-msa.h",
    "class llama_kv_cache_msa :",
    "class llama_kv_cache_other :",
  );
  assert.equal(find("memory kinds", gone), [
    "llama_kv_cache_other is a kind of memory that native/engine/slot_memory.cpp does not know",
    "llama_kv_cache_msa is no longer a kind of memory",
  ]);
});

test("batch splitting reports changed and new calls", () => {
  const path = "src/llama-kv-cache-iswa.cpp";
  assert.equal(
    find(
      "batch splitting",
      edited(path, "split_equal(n_ubatch, !unified, 0)", "split_equal(n_ubatch, true, 1)"),
    ),
    [
      `${path} splits by split_simple(n_ubatch); split_equal(n_ubatch, true, 1), not by split_simple(n_ubatch); split_equal(n_ubatch, !unified, 0)`,
    ],
  );
  assert.equal(find("batch splitting", { "src/llama-new.cpp": "auto u = balloc.split_seq(n);" }), [
    "src/llama-new.cpp splits by split_seq(n), not by anything known",
  ]);
});

test("replaced functions must be defined once, in the renamed file", () => {
  const path = "ggml/src/ggml-cpu/ops.cpp";
  const name = "ggml_compute_forward_flash_attn_ext";
  const body = `void ${name}(const ggml_compute_params * params, ggml_tensor * dst) { run(params, dst); }`;
  assert.equal(find("replaced functions", { [path]: body }), []);
  assert.equal(find("replaced functions", { [path]: "" }), [`${path} defines ${name} 0 times, not once`]);
  assert.equal(find("replaced functions", { "ggml/src/ggml-cpu/attention.cpp": body }), [
    `ggml/src/ggml-cpu/attention.cpp defines ${name}, too`,
  ]);
  assert.equal(find("replaced functions", { "ggml/src/ggml-cpu/arch/new/ops.cpp": body }), []);
  assert.equal(find("replaced functions", {}, { "CMakeLists.txt": "" }), [
    "CMakeLists.txt gives no function another name",
  ]);
});

test("GELU reports calls from files other than ops.cpp", () => {
  const path = "ggml/src/ggml-cpu/unary-ops.cpp";
  assert.equal(find("GELU", { [path]: "ggml_vec_gelu_f32(n, y, x);" }), [
    `${path} calls ggml_vec_gelu_f32, which is replaced in ggml/src/ggml-cpu/ops.cpp only`,
  ]);
});

test("chat fields reports a field that is no longer written", () => {
  const path = "tools/server/server-common.cpp";
  assert.equal(
    find("chat fields", edited(path, 'llama_params["generation_prompt"]', 'llama_params["begun"]')),
    [
      'server-common.cpp no longer says "generation_prompt" of a chat, which native/engine/chat_session.cpp reads',
    ],
  );
});

test("names in graphs reports renamed and unused names", () => {
  const path = "src/llama-graph.cpp";
  assert.equal(find("names in graphs", edited(path, '"out_ids"', '"output_ids_"')), [
    'nothing is named "out_ids" any more, which native/capture/residual_stream.cpp looks for',
  ]);
  const walk = { "native/capture/block_walk.cpp": "" };
  assert.equal(find("names in graphs", {}, walk), [
    'native/capture/block_walk.cpp no longer looks for "cache_": take it from this list',
  ]);
});

test("ends of blocks reports another definition, new callers and models without the call", () => {
  const path = "src/llama-graph.cpp";
  const definition = "return cvec->apply_to(ctx0, cur, il);";
  assert.equal(find("ends of blocks", edited(path, definition, `note(il); ${definition}`)), [
    `${path}: build_cvec no longer only applies the control vector, as native/ends does`,
  ]);
  assert.equal(find("ends of blocks", { [path]: `${real.theirs(path)}\nx = build_cvec(x, 0);` }), [
    `${path} has build_cvec 2 times, not once: its definition`,
  ]);
  assert.equal(find("ends of blocks", { "src/llama-other.cpp": "cur = build_cvec(cur, il);" }), [
    "src/llama-other.cpp calls build_cvec, which only models did",
  ]);
  assert.equal(
    find("ends of blocks", { "src/models/llama.cpp": "", "src/models/bert.cpp": "build_cvec(cur, il);" }),
    [
      "src/models/llama.cpp does not call build_cvec: its edits would be left to the callback",
      "src/models/bert.cpp calls build_cvec now or is gone: take it from this list",
    ],
  );
  assert.equal(find("ends of blocks", {}, { "CMakeLists.txt": "" }), [
    "CMakeLists.txt does not rename build_cvec",
  ]);
});

test("named architectures and RPC protocol report changes", () => {
  assert.equal(find("named architectures", edited("src/llama-arch.cpp", '"talkie"', '"talkative"')), [
    'llama.cpp has no architecture "talkie" any more, which native/capture/residual_stream.cpp names',
  ]);
  const header = "#define RPC_PROTO_MAJOR_VERSION    9\n#define RPC_PROTO_MINOR_VERSION    1\n";
  assert.equal(find("RPC protocol", { "ggml/include/ggml-rpc.h": header }), [
    "ggml-rpc.h speaks 9.1, and src/models/rpc.ts greets with 7.0",
  ]);
});

test("the table shows the first difference of each check", async () => {
  const rows = [
    await timed("one", () => []),
    await timed("another", () => ["  error: this\n  is so", "that"]),
    await timed("third", () => {
      throw new Error("it is gone");
    }),
  ];
  const fixed = rows.map((row) => ({ ...row, seconds: 2 }));
  const last = { check: "last", result: "not run" as const, seconds: 0, different: "it needs the addon" };
  assert.equal(printTable([...fixed, last]).split("\n"), [
    "check    result   seconds  first difference",
    "one      holds        2.0",
    "another  differs      2.0  error: this is so (and 1 more)",
    "third    differs      2.0  it is gone",
    "last     not run           it needs the addon",
  ]);
});

test.run();
