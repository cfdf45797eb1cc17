/**
 * Assumptions about llama.cpp that no header confirms, so that native/assumptions.cpp cannot check them. Each check reads
 * a source tree and lists the differences. Most of these would otherwise go unnoticed: nothing fails, and results are wrong.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { versionOf } from "../../../scripts/build/source.js";
import { protocol } from "../../../src/models/rpc.js";

/** Source files by path; tests substitute some of them. */
export interface Sources {
  /** A file of llama.cpp. @throws if it does not exist */
  theirs(path: string): string;
  /** The paths of llama.cpp's files in a folder and below it. */
  list(folder: string): string[];
  /** A file of tapline, as it is compiled with this version of llama.cpp. */
  ours(path: string): string;
}

export interface SourceCheck {
  name: string;
  /** @returns one sentence per difference; empty if the assumption holds */
  find(sources: Sources): string[];
}

const server = "tools/server/server-context.cpp";

/** Replaces comments by spaces, so that line numbers do not change. */
export function withoutComments(text: string): string {
  return text.replace(/"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (found) =>
    /^["']/.test(found) ? found : found.replace(/[^\n]/g, " "),
  );
}

const lineOf = (text: string, at: number) => text.slice(0, at).split("\n").length;

/** Lines on which a function is called, declared or defined. */
function linesWith(text: string, name: string): number[] {
  const code = withoutComments(text);
  return [...code.matchAll(new RegExp(`\\b${name}\\s*\\(`, "g"))].map(({ index }) => lineOf(code, index));
}

/** The text between the braces behind `head`. */
function bodyOf(text: string, head: string): string | undefined {
  const code = withoutComments(text);
  const start = code.indexOf(head);
  if (start < 0) return undefined;
  const open = code.indexOf("{", start);
  let depth = 0;
  for (let at = open; at >= 0 && at < code.length; at++) {
    if (code[at] === "{") depth++;
    if (code[at] === "}" && --depth === 0) return code.slice(open, at);
  }
  return undefined;
}

/** Functions that compute a batch. native/engine/server_slots.cpp intercepts one of them. */
const decoders = ["llama_decode", "llama_process", "llama_encode"];

const decodeCalls: SourceCheck = {
  name: "decode call",
  find({ theirs, ours }) {
    const slots = "native/engine/server_slots.cpp";
    const renamed = /#define (\w+)(?:\([^)]*\))? decode_through_hook\b/.exec(ours(slots))?.[1];
    if (renamed === undefined) return [`${slots} renames no function`];
    const text = theirs(server);
    const problems: string[] = [];
    const lines = linesWith(text, renamed);
    if (lines.length !== 1) {
      const where = lines.length > 0 ? ` (lines ${lines.join(", ")})` : "";
      problems.push(
        `${server} calls ${renamed} ${lines.length} times${where}, not once: live requests see one call`,
      );
    }
    for (const other of decoders.filter((name) => name !== renamed)) {
      for (const line of linesWith(text, other)) {
        problems.push(`${server}:${line} calls ${other}, which live requests do not see`);
      }
    }
    const inYield = new RegExp(
      `\\byield_to_queue\\s*\\(\\s*\\[&\\]\\s*\\(\\)\\s*\\{[^}]*\\b${renamed}\\s*\\(`,
    );
    if (lines.length === 1 && !inYield.test(withoutComments(text))) {
      problems.push(
        `${server}:${lines[0]} decodes outside of yield_to_queue, behind which slots are settled`,
      );
    }
    return problems;
  },
};

/** The callback identifies the request whose cache must be cut, so the slot must still have its task. */
const slotReset: SourceCheck = {
  name: "slot's end",
  find({ theirs }) {
    const body = bodyOf(theirs(server), "void release()");
    if (body === undefined) return [`${server} has no release() of a slot`];
    const told = body.indexOf("callback_on_reset(*this)");
    const gone = [/\breset\(\)/, /\btask\.reset\(/, /\btask\s*=/]
      .map((each) => body.search(each))
      .filter((at) => at >= 0);
    if (told >= 0 && gone.length > 0 && gone.every((at) => told < at)) return [];
    return [`${server}: release() must call callback_on_reset before it forgets the slot's task`];
  },
};

/** Kinds of memory that only refused architectures have. */
const refusedMemories: Record<string, string> = {
  llama_kv_cache_dsv4: "deepseek4 carries several residual streams and is refused",
};

/** Models whose kind of memory native/engine/slot_memory.cpp does not know cannot be inspected while served. */
const memoryKinds: SourceCheck = {
  name: "memory kinds",
  find({ theirs, list, ours }) {
    const known = new Set(
      [...ours("native/engine/slot_memory.cpp").matchAll(/dynamic_cast<(\w+)\*>/g)].map(([, kind]) => kind!),
    );
    const bases = new Map<string, string>();
    for (const path of list("src").filter((each) => each.endsWith(".h"))) {
      const code = withoutComments(theirs(path));
      for (const [, kind, base] of code.matchAll(
        /\b(?:class|struct)\s+(\w+)(?:\s+final)?\s*:\s*(?:public\s+)?(\w+)/g,
      ))
        bases.set(kind!, base!);
    }
    const isMemory = (kind: string): boolean => {
      const base = bases.get(kind);
      return base !== undefined && (base === "llama_memory_i" || isMemory(base));
    };
    const found = [...bases.keys()].filter(isMemory);
    return [
      ...found
        .filter((kind) => !known.has(kind) && refusedMemories[kind] === undefined)
        .map((kind) => `${kind} is a kind of memory that native/engine/slot_memory.cpp does not know`),
      ...[...known]
        .filter((kind) => !found.includes(kind))
        .map((kind) => `${kind} is no longer a kind of memory`),
    ];
  },
};

/**
 * The calls by which each kind of memory splits a batch into micro-batches. native/capture/row_map.cpp predicts their
 * results, and test/support/row-maps checks its predictions for these calls.
 */
const knownSplits: Record<string, readonly string[]> = {
  "src/llama-context.cpp": ["split_simple(n_tokens)"],
  "src/llama-kv-cache.cpp": ["split_simple(n_ubatch)", "split_equal(n_ubatch, true, 0)"],
  "src/llama-kv-cache-dsa.cpp": ["split_simple(n_ubatch)", "split_equal(n_ubatch, true, 0)"],
  "src/llama-kv-cache-dsa-iswa.cpp": ["split_simple(n_ubatch)", "split_equal(n_ubatch, !unified, 0)"],
  "src/llama-kv-cache-dsv4.cpp": [
    "split_simple(n_ubatch)",
    "split_seq(n_ubatch)",
    "split_equal(n_ubatch, raw_per_seq || comp_per_seq, n_rs_seq > 0 ? n_rs_seq + 1 : 0)",
  ],
  "src/llama-kv-cache-iswa.cpp": ["split_simple(n_ubatch)", "split_equal(n_ubatch, !unified, 0)"],
  "src/llama-kv-cache-msa.cpp": ["split_simple(n_ubatch)", "split_equal(n_ubatch, true, 0)"],
  "src/llama-memory-hybrid.cpp": [
    "split_seq(n_ubatch)",
    "split_equal(n_ubatch, !unified, n_rs_seq > 0 ? n_rs_seq + 1 : 0)",
  ],
  "src/llama-memory-hybrid-idx.cpp": [
    "split_seq(n_ubatch)",
    "split_equal(n_ubatch, !unified, n_rs_seq > 0 ? n_rs_seq + 1 : 0)",
  ],
  "src/llama-memory-hybrid-iswa.cpp": [
    "split_seq(n_ubatch)",
    "split_equal(n_ubatch, !unified, n_rs_seq > 0 ? n_rs_seq + 1 : 0)",
  ],
  "src/llama-memory-recurrent.cpp": [
    "split_seq(n_ubatch)",
    "split_equal(n_ubatch, true, n_rs_seq > 0 ? n_rs_seq + 1 : 0)",
  ],
};

const splits: SourceCheck = {
  name: "batch splitting",
  find({ theirs, list }) {
    const found: Record<string, string[]> = {};
    for (const path of list("src").filter(
      (each) => each.endsWith(".cpp") && !each.endsWith("/llama-batch.cpp"),
    )) {
      const calls = withoutComments(theirs(path)).matchAll(
        /(?:\.|->)\s*(split_(?:simple|equal|seq)\([^;]*?\))\s*[;:]/g,
      );
      const normal = [...calls].map(([, call]) => call!.replace(/\s+/g, " "));
      if (normal.length > 0) found[path] = normal;
    }
    return [...new Set([...Object.keys(knownSplits), ...Object.keys(found)])].flatMap((path) => {
      const [known, now] = [knownSplits[path] ?? [], found[path] ?? []];
      if (known.join("; ") === now.join("; ")) return [];
      return [
        `${path} splits by ${now.join("; ") || "nothing"}, not by ${known.join("; ") || "anything known"}`,
      ];
    });
  },
};

/** Functions that CMakeLists.txt renames, so that those of native/products are linked instead. */
const replacedFunctions: SourceCheck = {
  name: "replaced functions",
  find({ theirs, list, ours }) {
    const cmake = ours("CMakeLists.txt");
    const renamed = [...cmake.matchAll(/"\$\{LLAMA_CPP_DIR\}\/(\S+?)"[^"]*"(\w+)=ggml_own_\w+"/g)].map(
      ([, path, name]) => ({ path: path!, name: name! }),
    );
    if (renamed.length === 0) return ["CMakeLists.txt gives no function another name"];
    const folder = "ggml/src/ggml-cpu/";
    // Files for other processors define the same function, but are not compiled into the same library.
    const elsewhere = /\/(arch|spacemit|kleidiai|amx)\//;
    const sources = list(folder).filter((path) => /\.(c|cpp)$/.test(path));
    return renamed.flatMap(({ path, name }) => {
      const definition = new RegExp(`\\b${name}\\s*\\([^;{]*\\)\\s*\\{`, "g");
      const count = (text: string) => [...withoutComments(text).matchAll(definition)].length;
      const here = sources.includes(path) ? count(theirs(path)) : 0;
      const others = sources.filter(
        (each) => each !== path && !elsewhere.test(each) && count(theirs(each)) > 0,
      );
      return [
        ...(here === 1 ? [] : [`${path} defines ${name} ${here} times, not once`]),
        ...others.map((other) => `${other} defines ${name}, too`),
      ];
    });
  },
};

/** CMakeLists.txt includes native/products/exact_gelu.h in ops.cpp only. */
const geluCallers: SourceCheck = {
  name: "GELU",
  find({ theirs, list, ours }) {
    const names = [...ours("native/products/exact_gelu.h").matchAll(/#define (ggml_vec_\w+)\(/g)].map(
      ([, name]) => name!,
    );
    const home = "ggml/src/ggml-cpu/ops.cpp";
    return names.flatMap((name) => {
      const callers = list("ggml/src/ggml-cpu/").filter(
        (path) =>
          /\.(c|cpp|h)$/.test(path) && !path.endsWith("/vec.h") && linesWith(theirs(path), name).length > 0,
      );
      const wrong = callers.filter((path) => path !== home);
      return [
        ...(callers.includes(home) ? [] : [`${home} no longer calls ${name}`]),
        ...wrong.map((path) => `${path} calls ${name}, which is replaced in ${home} only`),
      ];
    });
  },
};

/** Fields of a prepared chat that we read from JSON. A missing field reads as empty. */
const chatFields: SourceCheck = {
  name: "chat fields",
  find({ theirs, ours }) {
    const path = "native/engine/chat_session.cpp";
    const reader = ours(path);
    const keys = [...new Set([...reader.matchAll(/json_value\(body, "(\w+)"/g)].map(([, key]) => key!))];
    if (keys.length === 0 && !reader.includes("session_.")) return [`${path} reads nothing of a chat`];
    const writer = withoutComments(theirs("tools/server/server-common.cpp"));
    return keys
      .filter((key) => !writer.includes(`llama_params["${key}"]`))
      .map((key) => `server-common.cpp no longer says "${key}" of a chat, which ${path} reads`);
  },
};

/** Names of tensors and buffers, by the file of tapline that looks them up. */
const names: Record<string, readonly string[]> = {
  "native/capture/residual_stream.cpp": [
    "inp_tokens",
    "inp_embd",
    "l_out",
    "nemotron_h_block_out",
    "ffn_residual",
    "h_nextn",
    "out_ids",
    "result_output",
    "result_norm",
    "result_embd",
  ],
  "native/capture/block_walk.cpp": ["cache_"],
  "native/capture/weight_row.cpp": ["REPACK"],
};

const graphNames: SourceCheck = {
  name: "names in graphs",
  find({ theirs, list, ours }) {
    const text = [...list("src"), "ggml/src/ggml-cpu/repack.cpp"]
      .filter((path) => path.endsWith(".cpp"))
      .map((path) => withoutComments(theirs(path)))
      .join("\n");
    const written = (name: string) => new RegExp(`"[^"\\n]*${name}[^"\\n]*"`).test(text);
    return Object.entries(names).flatMap(([path, wanted]) => {
      const reader = ours(path);
      return wanted.flatMap((name) => {
        if (!reader.includes(`"${name}`))
          return [`${path} no longer looks for "${name}": take it from this list`];
        return written(name) ? [] : [`nothing is named "${name}" any more, which ${path} looks for`];
      });
    });
  },
};

/** Architectures that tapline refuses or treats specially. */
const architectures: SourceCheck = {
  name: "named architectures",
  find({ theirs, ours }) {
    const known = withoutComments(theirs("src/llama-arch.cpp"));
    const wanted = [
      ...ours("native/capture/residual_stream.cpp").matchAll(/^\s+\{"([\w-]+)", (?:"|true|false)/gm),
    ].map(([, name]) => name!);
    if (wanted.length === 0) return ["native/capture/residual_stream.cpp names no architecture"];
    return wanted
      .filter((name) => !known.includes(`"${name}"`))
      .map(
        (name) =>
          `llama.cpp has no architecture "${name}" any more, which native/capture/residual_stream.cpp names`,
      );
  },
};

/** Files of models whose blocks do not end with build_cvec: encoders, parts of other models, and a few decoders. */
const withoutBlockEnd = [
  ...["bert", "clip", "deepseek2ocr", "delta-net-base", "dflash", "eagle3", "eurobert", "gemma4-assistant"],
  ...["granite-moe", "hunyuan-dense", "hy-v4", "jina-bert-v2", "jina-bert-v3", "lfm2moe", "llama-embed"],
  ...["mamba-base", "mamba2", "minicpm", "mistral4", "modern-bert", "nemotron-h-moe", "neo-bert"],
  ...[
    "nomic-bert",
    "nomic-bert-moe",
    "phimoe",
    "plamo2",
    "qwen3tts",
    "rwkv6-base",
    "rwkv7-base",
    "t5encoder",
  ],
  ...["qwen4exp", "wavtokenizer-dec"],
];

/** CMakeLists.txt renames build_cvec in one file, so that native/ends is called instead and does what it did. */
const blockEnd: SourceCheck = {
  name: "ends of blocks",
  find({ theirs, list, ours }) {
    const home = "src/llama-graph.cpp";
    const problems: string[] = [];
    if (!ours("CMakeLists.txt").includes("build_cvec=llama_own_build_cvec"))
      problems.push("CMakeLists.txt does not rename build_cvec");
    const lines = linesWith(theirs(home), "build_cvec");
    if (lines.length !== 1)
      problems.push(`${home} has build_cvec ${lines.length} times, not once: its definition`);
    const body = bodyOf(theirs(home), "llm_graph_context::build_cvec(")?.replace(/\s+/g, " ");
    if (body !== "{ return cvec->apply_to(ctx0, cur, il); ")
      problems.push(`${home}: build_cvec no longer only applies the control vector, as native/ends does`);
    const files = list("src").filter((path) => path.endsWith(".cpp"));
    const models = files.filter((path) => path.startsWith("src/models/"));
    const without = models.filter((path) => linesWith(theirs(path), "build_cvec").length === 0);
    const names = without.map((path) => path.slice("src/models/".length, -".cpp".length));
    problems.push(
      ...names
        .filter((name) => !withoutBlockEnd.includes(name))
        .map(
          (name) =>
            `src/models/${name}.cpp does not call build_cvec: its edits would be left to the callback`,
        ),
      ...withoutBlockEnd
        .filter((name) => !names.includes(name))
        .map((name) => `src/models/${name}.cpp calls build_cvec now or is gone: take it from this list`),
      ...files
        .filter((path) => path !== home && !models.includes(path))
        .filter((path) => linesWith(theirs(path), "build_cvec").length > 0)
        .map((path) => `${path} calls build_cvec, which only models did`),
    );
    return problems;
  },
};

/** tapline checks the protocol of rpc-servers first, because llama.cpp aborts the process on a mismatch. */
export const rpcProtocol: SourceCheck = {
  name: "RPC protocol",
  find({ theirs }) {
    const header = theirs("ggml/include/ggml-rpc.h");
    const number = (part: string) =>
      Number(new RegExp(`#define RPC_PROTO_${part}_VERSION\\s+(\\d+)`).exec(header)?.[1] ?? Number.NaN);
    const [major, minor] = [number("MAJOR"), number("MINOR")];
    if (major === protocol.major && minor === protocol.minor) return [];
    return [
      `ggml-rpc.h speaks ${major}.${minor}, and src/models/rpc.ts greets with ${protocol.major}.${protocol.minor}`,
    ];
  },
};

export const sourceChecks: readonly SourceCheck[] = [
  decodeCalls,
  slotReset,
  memoryKinds,
  splits,
  replacedFunctions,
  geluCallers,
  chatFields,
  graphNames,
  architectures,
  blockEnd,
  rpcProtocol,
];

const root = fileURLToPath(new URL("../../..", import.meta.url));

/**
 * Blanks the branches of `#if TAPLINE_LLAMA_CPP >= N` that are not compiled with a version of llama.cpp.
 * @param version e.g. "0.5.0", which CMakeLists.txt converts to 500
 */
export function asCompiled(text: string, version: string): string {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  const number = major * 10000 + minor * 100 + patch;
  const kept: string[] = [];
  const taken: (boolean | undefined)[] = []; // per open #if; undefined: another condition
  for (const line of text.split("\n")) {
    const least = /^#if TAPLINE_LLAMA_CPP >= (\d+)/.exec(line)?.[1];
    if (least !== undefined) taken.push(number >= Number(least));
    else if (/^#if/.test(line)) taken.push(undefined);
    else if (/^#else/.test(line) && taken.at(-1) !== undefined) taken.push(!taken.pop());
    else if (/^#endif/.test(line)) taken.pop();
    kept.push(taken.includes(false) ? "" : line);
  }
  return kept.join("\n");
}

/** Sources on disk. @param dir llama.cpp's tree */
export function sourcesIn(dir: string): Sources {
  const version = versionOf(dir);
  return {
    theirs: (path) => readFileSync(join(dir, path), "utf8"),
    list: (folder) =>
      readdirSync(join(dir, folder), { recursive: true, encoding: "utf8" })
        .map((name) => join(folder, name).replaceAll("\\", "/"))
        .filter((path) => /\.\w+$/.test(path))
        .sort(),
    ours: (path) => asCompiled(readFileSync(join(root, path), "utf8"), version),
  };
}
