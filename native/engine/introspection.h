#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/live_batch.h"
#include "engine/live_registry.h"
#include "engine/options.h"
#include "engine/plain_twin.h"
#include "engine/prompt_scorer.h"
#include "engine/resident_capture.h"
#include "engine/resident_forward.h"
#include "engine/server_slots.h"
#include "server-context.h"

namespace tapline {

/// Access to the served model's activations: captures, scores of prompts, and live requests in the server's
/// batches. Models without support for it are still served.
class Introspection {
 public:
  /// On the generation thread, once the model is loaded. `slot_tokens`: the size of a slot. `registry` must
  /// outlive this object.
  void open(server_context& server, const EngineOptions& options, const common_params& params,
            int slot_tokens, LiveRegistry& registry);

  /// If false, `reason()` says why.
  bool supported() const { return capture_ != nullptr; }
  const std::string& reason() const { return reason_; }

  /// Names of the points that the model's blocks have; empty if unsupported.
  std::vector<std::string> points() const;

  /// See ResidentCapture::run, PromptScorer::run and ResidentForward::run. Throws kUnsupportedArchitecture
  /// with the reason, kClosed.
  CaptureResult capture(GenerationLoop& loop, const CaptureRequest& request, const CancelToken& cancel);
  ScoreResult score(GenerationLoop& loop, const ScoreRequest& request, const CancelToken& cancel);
  ServedForwardResult forward(GenerationLoop& loop, ServedForwardRequest request, const CancelToken& cancel);
  /// Whether additions to the residual stream are normalised.
  bool normed() const { return capture_ != nullptr && capture_->stream().points.normed; }

  /// The twin's comparisons so far, if the options have a twin.
  std::optional<TwinReport> twin();

  /// After the loop has ended, before the server's context is freed.
  void close();

 private:
  static std::string why_unsupported(const EngineOptions& options);
  void check_supported(const void* part) const;

  std::string reason_;
  std::mutex capture_mutex_;
  std::unique_ptr<ResidentCapture> capture_;
  std::mutex score_mutex_;
  std::unique_ptr<PromptScorer> scorer_;
  std::mutex forward_mutex_;
  std::unique_ptr<ResidentForward> forward_;
  std::unique_ptr<ServerSlots> slots_;  // until the server's context is gone
  std::unique_ptr<LiveBatch> live_;
  std::mutex twin_mutex_;
  std::unique_ptr<PlainTwin> twin_;
};

}  // namespace tapline
