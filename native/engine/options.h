#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common.h"

namespace tapline {

/// For models without a chat template: the messages' texts. Answers continue the text before them; other
/// messages begin after an empty line.
inline constexpr const char* kRawTextTemplate =
    "{%- for message in messages -%}"
    "{%- if not loop.first and message.role != 'assistant' -%}{{- '\\n\\n' -}}{%- endif -%}"
    "{{- message.content -}}{%- endfor -%}";

/// Settings of the serving engine; src/native/engine.ts describes them too.
struct EngineOptions {
  std::string path;           // a .gguf file, or the first part of a split set
  std::string id;             // the name under which the model is served
  std::string draft;          // a draft model with the same vocabulary; empty: none
  std::string chat_template;  // a Jinja template; empty: the model's
  int gpu_layers = -1;        // blocks on the GPU; negative: as many as fit
  bool mmap = true;
  int ctx_size = 0;          // tokens of one slot; 0: the training context, at most 8192
  int parallel = 4;          // slots: requests generated at the same time
  int threads = -1;          // -1: the number of math cores
  int batch = 0;             // tokens decoded at once; 0: 256 on a CPU, 2048 on a GPU
  int cache_ram_mib = 512;   // for prompts to reuse
  int embeddings = -1;       // -1: on, unless their output buffer would be large
  int thinking = -1;         // -1: on if the template supports it; 0: off; 1: on
  int capture_tokens = 256;  // longest prompt of a resident capture; 0: no captures
  std::string edits;         // graph, callback; empty: graph where a GPU computes blocks
  bool twin = false;         // compute every batch a second time without edits, and compare
  int request_threads = 0;   // threads that prepare requests; 0: by number of cores

  std::string mmproj;                                // the model's image encoder; empty: none
  std::vector<std::pair<std::string, float>> loras;  // adapters and their scales
  std::string cache_type_k;                          // ggml's name of a type; empty: f16
  std::string cache_type_v;
  std::string flash_attention;      // on, off; empty: automatic
  std::string pooling;              // none, mean, cls, last, rank; empty: the model's
  std::string rope_scaling;         // none, linear, yarn; empty: the model's
  double rope_scale = 0;            // 0: the model's
  double rope_freq_base = 0;        // 0: the model's
  int yarn_original_ctx = 0;        // 0: the training context
  std::string split_mode;           // none, layer, row; empty: layer
  std::vector<float> tensor_split;  // each GPU's share; empty: by their memory
  int main_gpu = 0;
  int cpu_moe = 0;  // number of blocks with experts in the CPU's memory; negative: all
};

/// none, mean, cls, last or rank.
const char* pooling_name(enum llama_pooling_type pooling);

/// llama-server's parameters for `options`, without its parser, which may call exit(). Reads the file's
/// metadata for model-dependent values. Throws kModelLoad for a file that is not GGUF.
common_params engine_params(const EngineOptions& options);

}  // namespace tapline
