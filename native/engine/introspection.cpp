#include "engine/introspection.h"

#include <exception>
#include <utility>

#include "base/error.h"
#include "engine/slot_memory.h"

namespace tapline {

void Introspection::open(server_context& server, const EngineOptions& options, const common_params& params,
                         int slot_tokens, LiveRegistry& registry) {
  reason_ = why_unsupported(options);
  if (!reason_.empty()) return;
  try {
    auto* handle = const_cast<llama_model*>(llama_get_model(server.get_llama_context()));
    const std::shared_ptr<Model> model = Model::borrow(handle, options.path);
    const int threads = params.cpuparams.n_threads;
    auto capture = std::make_unique<ResidentCapture>(model, options.capture_tokens, threads, options.edits);
    if (!capture->supported()) {
      reason_ = capture->reason();
      return;
    }
    if (!can_wipe_sequence(llama_get_memory(server.get_llama_context()))) {
      reason_ = "The model's kind of memory cannot be wiped after a failed edit.";
      return;
    }
    capture_ = std::move(capture);
    scorer_ =
        std::make_unique<PromptScorer>(model, static_cast<uint32_t>(slot_tokens), threads, options.edits);
    forward_ =
        std::make_unique<ResidentForward>(model, static_cast<uint32_t>(slot_tokens), threads, options.edits);
    slots_ = std::make_unique<ServerSlots>(server);
    const bool in_graph = GraphEdits::chosen(slots_->context(), options.edits);
    live_ = std::make_unique<LiveBatch>(*slots_, registry, capture_->stream(), threads, in_graph);
    if (options.twin) twin_ = std::make_unique<PlainTwin>(*slots_, registry, params);
  } catch (const std::exception& error) {
    reason_ = error.what();
  }
}

/// Why the options make captures impossible; empty if they do not.
std::string Introspection::why_unsupported(const EngineOptions& options) {
  if (options.capture_tokens <= 0) return "Captures are switched off.";
  // Captures run in a separate context, which has neither: its numbers would be those of a different model.
  if (!options.loras.empty()) return "Captures are not possible with LoRA adapters; serve without --lora.";
  if (!options.rope_scaling.empty() || options.rope_scale > 0 || options.rope_freq_base > 0 ||
      options.yarn_original_ctx > 0)
    return "Captures are not possible with changed RoPE settings; serve without --rope-scaling, "
           "--rope-scale, --rope-freq-base and --yarn-orig-ctx.";
  return {};
}

void Introspection::check_supported(const void* part) const {
  if (part != nullptr) return;
  if (reason_.empty()) throw Error(ErrorCode::kClosed, "The engine is closed.");
  throw Error(ErrorCode::kUnsupportedArchitecture, reason_);
}

CaptureResult Introspection::capture(GenerationLoop& loop, const CaptureRequest& request,
                                     const CancelToken& cancel) {
  const std::lock_guard<std::mutex> lock(capture_mutex_);
  check_supported(capture_.get());
  return capture_->run(loop, request, cancel);
}

ScoreResult Introspection::score(GenerationLoop& loop, const ScoreRequest& request,
                                 const CancelToken& cancel) {
  const std::lock_guard<std::mutex> lock(score_mutex_);
  check_supported(scorer_.get());
  return scorer_->run(loop, request, cancel);
}

ServedForwardResult Introspection::forward(GenerationLoop& loop, ServedForwardRequest request,
                                           const CancelToken& cancel) {
  const std::lock_guard<std::mutex> lock(forward_mutex_);
  check_supported(forward_.get());
  return forward_->run(loop, std::move(request), cancel);
}

std::vector<std::string> Introspection::points() const {
  std::vector<std::string> names;
  for (size_t i = 0; capture_ && i < kPointCount; ++i) {
    if (capture_->stream().points.found[i].supported) names.emplace_back(kPointNames[i]);
  }
  return names;
}

std::optional<TwinReport> Introspection::twin() {
  const std::lock_guard<std::mutex> lock(twin_mutex_);
  if (!twin_) return std::nullopt;
  return twin_->report();
}

void Introspection::close() {
  // A rejected call may still be returning.
  const std::scoped_lock lock(capture_mutex_, score_mutex_, forward_mutex_, twin_mutex_);
  twin_.reset();
  live_.reset();
  forward_.reset();
  scorer_.reset();
  capture_.reset();
}

}  // namespace tapline
