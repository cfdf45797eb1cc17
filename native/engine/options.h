#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common.h"

namespace tapline {

/// How the serving engine is started. Zero or negative means "choose", as said at each field.
struct EngineOptions {
  std::string path;           // a .gguf file, or the first part of a split set
  std::string id;             // the name under which the model is served
  std::string draft;          // a smaller model of the same vocabulary that guesses tokens ahead; empty: none
  std::string chat_template;  // a Jinja template instead of the model's own; empty: the model's
  int gpu_layers = -1;        // blocks kept on the GPU; negative: as many as fit
  bool mmap = true;
  int ctx_size = 0;          // tokens of one slot; 0: what the model was trained with, at most 8192
  int parallel = 4;          // slots: requests generated at the same time
  int threads = -1;          // -1: the number of math cores
  int batch = 0;             // tokens decoded at once; 0: 256 on a CPU, 2048 on a GPU
  int cache_ram_mib = 512;   // prompts kept for reuse
  int embeddings = -1;       // -1: on, unless the output buffer for it would be large
  int thinking = -1;         // -1: on when the template supports it; 0: off; 1: on
  int capture_tokens = 256;  // longest prompt of a resident capture; 0: no captures
  bool twin = false;         // every batch is computed a second time without edits, and compared
  int request_threads = 0;   // threads that prepare requests; 0: chosen from the cores

  std::string mmproj;                                // the model's image encoder; empty: none
  std::vector<std::pair<std::string, float>> loras;  // adapters and how strongly each is applied
  std::string cache_type_k;                          // of the K and V caches, as ggml names types; empty: f16
  std::string cache_type_v;
  std::string flash_attention;      // on, off; empty: where it helps
  std::string pooling;              // none, mean, cls, last, rank; empty: the model's
  std::string rope_scaling;         // none, linear, yarn; empty: the model's
  double rope_scale = 0;            // how far positions are stretched; 0: the model's
  double rope_freq_base = 0;        // 0: the model's
  int yarn_original_ctx = 0;        // 0: what the model was trained with
  std::string split_mode;           // none, layer, row; empty: layer
  std::vector<float> tensor_split;  // each GPU's share; empty: by their memory
  int main_gpu = 0;
  int cpu_moe = 0;  // blocks whose experts stay in the CPU's memory; negative: all
};

/// How an embedding is made of a text's tokens: none, mean, cls, last or rank.
const char* pooling_name(enum llama_pooling_type pooling);

/// llama-server's parameters for `options`, filled in code: its own parser may call exit().
/// Reads the file's metadata for what depends on the model. Throws kModelLoad when it is no GGUF.
common_params engine_params(const EngineOptions& options);

}  // namespace tapline
