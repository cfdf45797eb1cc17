#include "engine/options.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "gguf.h"
#include "llama.h"

namespace tapline {

namespace {

constexpr int kDefaultCtxSize = 8192;
/// Above this many bytes of logits per batch, embeddings are off by default: with them llama.cpp reserves an
/// output row for every token of a batch.
constexpr int64_t kEmbeddingLogitBytes = 256ll << 20;

/// The metadata that determines parameters before the model is loaded.
struct FileFacts {
  int ctx_train = 0;
  int64_t vocab = 0;
  int pooling = -1;        // llama.cpp's number; -1: not in the file
  bool has_scorer = true;  // tensors for a score of a text
  bool has_chat_template = false;
};

struct GgufDeleter {
  void operator()(gguf_context* file) const { gguf_free(file); }
};

int uint_value(const gguf_context* file, const std::string& key) {
  const int64_t index = gguf_find_key(file, key.c_str());
  if (index < 0) return 0;
  if (gguf_get_kv_type(file, index) != GGUF_TYPE_UINT32) return 0;
  return static_cast<int>(std::min<uint32_t>(gguf_get_val_u32(file, index), INT32_MAX));
}

using GgufFile = std::unique_ptr<gguf_context, GgufDeleter>;

GgufFile open_gguf(const std::string& path) {
  GgufFile file(gguf_init_from_file(path.c_str(), {/*no_alloc=*/true, /*ctx=*/nullptr}));
  if (!file) throw_error(ErrorCode::kModelLoad, "\"", path, "\" is not a readable GGUF file.");
  return file;
}

std::vector<std::string> vocabulary(const std::string& path) {
  const GgufFile file = open_gguf(path);
  std::vector<std::string> tokens;
  const int64_t key = gguf_find_key(file.get(), "tokenizer.ggml.tokens");
  if (key < 0 || gguf_get_kv_type(file.get(), key) != GGUF_TYPE_ARRAY ||
      gguf_get_arr_type(file.get(), key) != GGUF_TYPE_STRING) {
    return tokens;
  }
  for (size_t i = 0; i < gguf_get_arr_n(file.get(), key); ++i)
    tokens.emplace_back(gguf_get_arr_str(file.get(), key, i));
  return tokens;
}

/// llama.cpp ignores a draft model with different tokens and reports that only in its log. The limits are
/// llama.cpp's: the number of paddings at the end may differ, the first few tokens are special.
void check_draft(const std::string& path, const std::string& draft) {
  constexpr size_t kMostPaddings = 128;
  constexpr size_t kFirstCompared = 5;
  const std::vector<std::string> ours = vocabulary(path);
  const std::vector<std::string> theirs = vocabulary(draft);
  const size_t shared = std::min(ours.size(), theirs.size());
  const std::string which = "The draft model \"" + draft + "\" has a different vocabulary: ";
  if (std::max(ours.size(), theirs.size()) - shared > kMostPaddings)
    throw_error(ErrorCode::kModelLoad, which, theirs.size(), " tokens, not ", ours.size(), ".");
  for (size_t i = kFirstCompared; i < shared; ++i) {
    if (ours[i] != theirs[i]) throw_error(ErrorCode::kModelLoad, which, "token ", i, " differs.");
  }
}

FileFacts read_facts(const std::string& path) {
  const GgufFile file = open_gguf(path);
  FileFacts facts;
  const int64_t arch_key = gguf_find_key(file.get(), "general.architecture");
  if (arch_key < 0 || gguf_get_kv_type(file.get(), arch_key) != GGUF_TYPE_STRING)
    throw_error(ErrorCode::kModelLoad, "\"", path, "\" does not name its architecture.");
  const std::string arch = gguf_get_val_str(file.get(), arch_key);
  facts.ctx_train = uint_value(file.get(), arch + ".context_length");
  if (gguf_find_key(file.get(), (arch + ".pooling_type").c_str()) >= 0)
    facts.pooling = uint_value(file.get(), arch + ".pooling_type");
  // The tensors of a split model may be in other files.
  facts.has_scorer = gguf_find_key(file.get(), "split.count") >= 0 ||
                     gguf_find_tensor(file.get(), "cls.weight") >= 0 ||
                     gguf_find_tensor(file.get(), "cls.output.weight") >= 0;
  facts.has_chat_template = gguf_find_key(file.get(), "tokenizer.chat_template") >= 0;
  const int64_t tokens = gguf_find_key(file.get(), "tokenizer.ggml.tokens");
  if (tokens >= 0 && gguf_get_kv_type(file.get(), tokens) == GGUF_TYPE_ARRAY) {
    facts.vocab = static_cast<int64_t>(gguf_get_arr_n(file.get(), tokens));
  }
  return facts;
}

bool has_gpu() {
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    const auto type = ggml_backend_dev_type(ggml_backend_dev_get(i));
    if (type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU) return true;
  }
  return false;
}

[[noreturn]] void refuse(const std::string& what, const std::string& value) {
  throw_error(ErrorCode::kInvalidArgument, what, " cannot be \"", value, "\".");
}

/// Sets `to` to the value of a name; an empty name leaves it.
template <class Value>
void choose(const std::string& what, const std::string& name,
            std::initializer_list<std::pair<const char*, Value>> values, Value& to) {
  if (name.empty()) return;
  const auto* found =
      std::find_if(values.begin(), values.end(), [&](const auto& each) { return name == each.first; });
  if (found == values.end()) refuse(what, name);
  to = found->second;
}

/// The types that llama.cpp's caches can have.
ggml_type cache_type(const std::string& name) {
  for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0,
                               GGML_TYPE_Q4_1, GGML_TYPE_IQ4_NL, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1}) {
    if (name == ggml_type_name(type)) return type;
  }
  refuse("A cache's type", name);
}

constexpr const char* kPoolings[] = {"none", "mean", "cls", "last", "rank"};  // by llama.cpp's numbers

enum llama_pooling_type pooling_type(const std::string& name) {
  const auto* found = std::find(std::begin(kPoolings), std::end(kPoolings), name);
  if (found == std::end(kPoolings)) refuse("The pooling", name);
  return static_cast<enum llama_pooling_type>(found - std::begin(kPoolings));
}

void set_context_options(const EngineOptions& options, common_params& params) {
  if (!options.cache_type_k.empty()) params.cache_type_k = cache_type(options.cache_type_k);
  if (!options.cache_type_v.empty()) params.cache_type_v = cache_type(options.cache_type_v);
  choose("Flash attention", options.flash_attention,
         {{"on", LLAMA_FLASH_ATTN_TYPE_ENABLED}, {"off", LLAMA_FLASH_ATTN_TYPE_DISABLED}},
         params.flash_attn_type);
  choose("The RoPE scaling", options.rope_scaling,
         {{"none", LLAMA_ROPE_SCALING_TYPE_NONE},
          {"linear", LLAMA_ROPE_SCALING_TYPE_LINEAR},
          {"yarn", LLAMA_ROPE_SCALING_TYPE_YARN}},
         params.rope_scaling_type);
  if (options.rope_scale > 0) params.rope_freq_scale = static_cast<float>(1 / options.rope_scale);
  if (options.rope_freq_base > 0) params.rope_freq_base = static_cast<float>(options.rope_freq_base);
  params.yarn_orig_ctx = options.yarn_original_ctx;
}

void set_device_options(const EngineOptions& options, common_params& params) {
  choose("The split mode", options.split_mode,
         {{"none", LLAMA_SPLIT_MODE_NONE}, {"layer", LLAMA_SPLIT_MODE_LAYER}, {"row", LLAMA_SPLIT_MODE_ROW}},
         params.split_mode);
  params.main_gpu = options.main_gpu;
  const size_t shares = std::min(options.tensor_split.size(), std::size(params.tensor_split));
  std::copy_n(options.tensor_split.begin(), shares, params.tensor_split);
  // An explicit split must not be changed by llama.cpp's fitting.
  if (shares > 0) params.fit_params = false;
  std::vector<llama_model_tensor_buft_override> overrides;
  if (options.cpu_moe < 0) overrides.push_back(llm_ffn_exps_cpu_override());
  if (options.cpu_moe > 0) llm_add_n_cpu_ffn_overrides(options.cpu_moe, LLM_FFN_EXPS_REGEX, overrides);
  if (overrides.empty()) return;
  // The list ends with an empty entry, and llama.cpp's fitting needs room after it.
  overrides.resize(std::max(overrides.size() + 1, llama_max_tensor_buft_overrides()), {nullptr, nullptr});
  params.tensor_buft_overrides = std::move(overrides);
}

}  // namespace

const char* pooling_name(enum llama_pooling_type pooling) {
  const auto number = static_cast<size_t>(std::max(0, static_cast<int>(pooling)));
  return kPoolings[std::min(number, std::size(kPoolings) - 1)];
}

common_params engine_params(const EngineOptions& options) {
  const FileFacts facts = read_facts(options.path);
  const bool gpu = has_gpu() && options.gpu_layers != 0;

  common_params params;
  params.verbosity = -1;
  params.model.path = options.path;
  params.model_alias = {options.id};
  params.n_gpu_layers = options.gpu_layers;
  params.fit_params = gpu && options.gpu_layers < 0;
  params.load_mode = options.mmap ? LLAMA_LOAD_MODE_MMAP : LLAMA_LOAD_MODE_NONE;
  params.cpuparams.n_threads = options.threads;
  postprocess_cpu_params(params.cpuparams, nullptr);
  postprocess_cpu_params(params.cpuparams_batch, &params.cpuparams);
  postprocess_cpu_params(params.speculative.draft.cpuparams, &params.cpuparams);
  postprocess_cpu_params(params.speculative.draft.cpuparams_batch, &params.cpuparams_batch);
  params.tensor_buft_overrides.assign(llama_max_tensor_buft_overrides(), {nullptr, nullptr});

  set_context_options(options, params);
  set_device_options(options, params);
  params.mmproj.path = options.mmproj;
  for (const auto& [path, scale] : options.loras) {
    common_adapter_lora_info& adapter = params.lora_adapters.emplace_back();
    adapter.path = path;
    adapter.scale = scale;
  }

  params.n_parallel = options.parallel;
  int slot_ctx = options.ctx_size;
  if (slot_ctx <= 0)
    slot_ctx = std::min(facts.ctx_train > 0 ? facts.ctx_train : kDefaultCtxSize, kDefaultCtxSize);
  constexpr int64_t kMostCells = 100'000'000;
  if (int64_t{slot_ctx} * options.parallel > kMostCells)
    throw_error(ErrorCode::kInvalidArgument, "All slots together may hold ", kMostCells, " tokens; ",
                options.parallel, " slots of ", slot_ctx, " hold ", int64_t{slot_ctx} * options.parallel,
                ".");
  // Separate cells per slot: the numbers of a slot do not depend on the others.
  params.kv_unified = false;
  params.n_ctx = slot_ctx * options.parallel;
  params.n_batch = options.batch > 0 ? options.batch : (gpu ? 2048 : 256);
  params.n_ubatch = std::min(params.n_ubatch, params.n_batch);
  params.cache_ram_mib = options.cache_ram_mib;

  if (!options.draft.empty()) {
    check_draft(options.path, options.draft);
    params.speculative.types = {COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE};
    params.speculative.draft.mparams.path = options.draft;
    params.speculative.draft.n_gpu_layers = options.gpu_layers;
  }
  params.embedding = options.embeddings >= 0 ? options.embeddings != 0
                                             : !options.pooling.empty() ||
                                                   facts.vocab * params.n_batch * 4 <= kEmbeddingLogitBytes;
  if (params.embedding) {
    // Generating models do not specify pooling. The last token has seen the whole text, and its embedding
    // needs only one batch at a time.
    if (!options.pooling.empty()) {
      params.pooling_type = pooling_type(options.pooling);
    } else if (facts.pooling < 0) {
      params.pooling_type = LLAMA_POOLING_TYPE_LAST;
    }
    const int pooling = params.pooling_type < 0 ? facts.pooling : static_cast<int>(params.pooling_type);
    // llama.cpp would use the first number of the last block as the score.
    if (pooling == LLAMA_POOLING_TYPE_RANK && !facts.has_scorer)
      throw Error(ErrorCode::kModelLoad, "The pooling cannot be rank: the model has no layer for scores.");
    params.n_batch = std::min(params.n_batch, params.n_ubatch);
  }

  params.use_jinja = true;
  // llama.cpp would use ChatML, whose markers a base model has never seen.
  params.chat_template =
      options.chat_template.empty() && !facts.has_chat_template ? kRawTextTemplate : options.chat_template;
  params.enable_reasoning = options.thinking;
  params.default_template_kwargs["preserve_reasoning"] = "true";
  if (options.thinking >= 0)
    params.default_template_kwargs["enable_thinking"] = options.thinking ? "true" : "false";
  params.sleep_idle_seconds = -1;
  params.sse_ping_interval = -1;  // the HTTP side sends them
  params.endpoint_slots = true;
  params.endpoint_metrics = true;
  return params;
}

}  // namespace tapline
