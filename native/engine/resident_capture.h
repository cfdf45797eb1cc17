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

/// Which state of a text a capture keeps of each layer, next to the norms; a mean is of the activations that
/// count.
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
  std::vector<LayerStates> layers;         // norms only, in the order asked for
  std::vector<std::vector<float>> states;  // [n_embd] a layer; empty unless kept
  std::vector<ExcludedRows> excluded;      // from the means; one a layer
  TopTokens next;
  std::vector<std::string> next_pieces;
  double waited_ms = 0;   // for the running iteration to end
  double forward_ms = 0;  // the pass itself, with its readings
};

/// Measures the resident model: a forward pass of a prompt on the serving weights, in a small context of its
/// own, on the generation thread between two iterations. No K/V of the serving slots is touched.
class ResidentCapture {
 public:
  /// Creates the context, which is kept. Throws kOutOfMemory when it does not fit.
  ResidentCapture(std::shared_ptr<Model> model, uint32_t max_tokens, int threads);

  /// Whether block outputs were found in this architecture; otherwise why not, in one sentence.
  bool supported() const { return context_.stream().supported; }
  const ResidualStream& stream() const { return context_.stream(); }
  const std::string& reason() const { return context_.stream().reason; }

  /// Blocks until the pass is done. `cancel` takes effect while it waits for its turn; a started pass
  /// completes. Throws kTokenLimit, kLayerOutOfRange, kUnsupportedArchitecture, kCancelled, kClosed.
  CaptureResult run(GenerationLoop& loop, const CaptureRequest& request, const CancelToken& cancel);

 private:
  void forward(const CaptureRequest& request, CaptureResult& result);
  void keep_state(const CaptureRequest& request, AdvanceResult& part, CaptureResult& result);
  void take_means(CaptureResult& result);

  std::shared_ptr<Model> model_;
  Passes context_;
};

}  // namespace tapline
