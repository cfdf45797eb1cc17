#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/counted.h"
#include "llama.h"
#include "model/placement.h"

namespace tapline {

struct ModelOptions {
  std::string path;                  // a .gguf file, or the first part of a split set
  int gpu_layers = -1;               // blocks on GPUs; negative: as many as fit now
  std::vector<std::string> devices;  // names of the GPUs; empty: all; "none": the processor only
  uint32_t fit_tokens = 4096;        // of the context that must fit together with the blocks
  bool mmap = true;                  // processes share the file's pages
};

struct ModelInfo {
  std::string path;
  std::string architecture;
  std::string name;
  std::string quantization;
  std::string chat_template;
  int n_layer = 0;
  int n_embd = 0;
  int n_vocab = 0;
  int n_ctx_train = 0;
  int n_swa = 0;
  uint64_t n_params = 0;
  uint64_t bytes = 0;
  bool add_bos = false;
  int32_t bos = -1;  // the token that texts begin with; -1: none
  bool has_encoder = false;
  bool has_decoder = false;
  bool recurrent = false;
  bool hybrid = false;
  std::vector<llama_token> end_of_generation;  // tokens that end a text
  std::vector<DeviceBlocks> devices;           // where the blocks are
};

/// One loaded GGUF: weights, vocabulary and metadata. Immutable and safe to share between threads.
class Model : public Counted<Model> {
 public:
  /// Called with the share of the tensors loaded so far, 0..1, on the calling thread.
  using LoadProgress = std::function<void(float)>;

  /// Loads the weights. Throws kModelLoad with llama.cpp's reason, or kCancelled.
  static std::shared_ptr<Model> open(const ModelOptions& options, const CancelToken& cancel,
                                     const LoadProgress& progress);

  /// For a model that the serving engine owns and keeps alive.
  static std::shared_ptr<Model> borrow(llama_model* handle, const std::string& path);

  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  llama_model* handle() const { return handle_; }
  const llama_vocab* vocab() const { return vocab_; }
  const ModelInfo& info() const { return info_; }
  /// Throws kInvalidArgument unless all are in the vocabulary.
  void check_tokens(const std::vector<llama_token>& tokens) const;
  /// Throws kLayerOutOfRange unless the model has such a block.
  void check_layer(int layer) const;

  /// Whether the tensor is one of the model's weights.
  bool owns(const ggml_tensor* tensor) const;
  /// The first weight with that name, or null.
  ggml_tensor* tensor(const std::string& name) const;

  /// Token ids of `text`. `special` adds BOS and EOS as the model requires; `parse_special` recognises
  /// control tokens such as <|im_start|> in the text.
  std::vector<llama_token> tokenize(std::string_view text, bool special, bool parse_special) const;

  /// The bytes of one token, which may not be valid UTF-8.
  std::string piece(llama_token token) const;

  /// The text of the tokens, including control tokens.
  std::string detokenize(const std::vector<llama_token>& tokens) const;

 private:
  Model(llama_model* handle, bool owned, const std::string& path);

  llama_model* handle_;
  bool owned_;
  const llama_vocab* vocab_;
  ModelInfo info_;
};

/// Throws kModelLoad if llama.cpp v0.5.0 is known to compute wrong numbers with the weights as they are in
/// memory: its product with weights that were repacked for the processor's instructions quantises four rows
/// of the other matrix together and assumes that they are adjacent. The query's rows of multi-head latent
/// attention are not, and their matrix is repacked if it has a single head.
void check_weights(const llama_model* model, const std::string& path);

/// Starts llama.cpp's backends and its log sink, once per process.
void start_backends();

}  // namespace tapline
