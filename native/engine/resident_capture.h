#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/counted_rows.h"
#include "engine/generation_loop.h"
#include "experiment/advance.h"

namespace tapline {

/// The state of each layer that a capture returns, in addition to norms; means exclude BOS and outliers.
enum class CapturedState { kNone, kLastToken, kMean };

struct CaptureRequest {
  std::string prompt;       // raw text
  std::vector<int> layers;  // distinct
  int max_tokens = 0;
  int next_top = 0;
  CapturedState state = CapturedState::kNone;
};

struct CaptureResult {
  std::vector<llama_token> tokens;
  std::vector<std::string> pieces;         // the bytes of each token
  std::vector<LayerStates> layers;         // only norms
  std::vector<std::vector<float>> states;  // [n_embd] per layer; empty unless requested
  std::vector<ExcludedRows> excluded;      // from the means, per layer
  TopTokens next;
  std::vector<std::string> next_pieces;
  double waited_ms = 0;   // for the running iteration to end
  double forward_ms = 0;  // the pass itself, with its readings
};

/// A forward pass of a prompt on the serving weights, in a small separate context, on the generation thread
/// between two iterations. K/V of the serving slots is not touched.
class ResidentCapture {
 public:
  /// Creates the context. Throws kOutOfMemory if it does not fit.
  /// @param edits see ContextOptions
  ResidentCapture(std::shared_ptr<Model> model, uint32_t max_tokens, int threads, const std::string& edits);

  /// Whether block outputs were found in this architecture; otherwise reason() is a sentence.
  bool supported() const { return context_.stream().supported; }
  const ResidualStream& stream() const { return context_.stream(); }
  const std::string& reason() const { return context_.stream().reason; }

  /// Blocks until the pass is done. `cancel` takes effect before it starts. Throws kTokenLimit,
  /// kLayerOutOfRange, kUnsupportedArchitecture, kCancelled, kClosed.
  CaptureResult run(GenerationLoop& loop, const CaptureRequest& request, const CancelToken& cancel);

 private:
  void forward(const CaptureRequest& request, CaptureResult& result);
  void keep_state(const CaptureRequest& request, AdvanceResult& part, CaptureResult& result);
  void take_means(CaptureResult& result);

  std::shared_ptr<Model> model_;
  Passes context_;
};

}  // namespace tapline
