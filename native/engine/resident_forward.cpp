#include "engine/resident_forward.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tapline {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

/// The initial size of a context, in tokens; it grows by doubling.
constexpr uint32_t kLeastTokens = 512;
/// Generation waits for a whole batch, so batches are larger only for models that compute them soon. Their
/// size does not depend on the load: results have the same bits next to chats.
constexpr uint32_t kSmallModelBatch = 512;
constexpr uint64_t kSmallModel = 1'000'000'000;  // parameters
/// Sequences of one batch. Recurrent models reserve a state for each.
constexpr uint32_t kMostSequences = 64;
constexpr uint32_t kMostRecurrentSequences = 4;

}  // namespace

ResidentForward::ResidentForward(std::shared_ptr<Model> model, uint32_t n_ctx, int threads, std::string edits)
    : model_(std::move(model)), n_ctx_(n_ctx), threads_(threads), edits_(std::move(edits)) {}

ServedForwardResult ResidentForward::run(GenerationLoop& loop, ServedForwardRequest request,
                                         const CancelToken& cancel) {
  ServedForwardResult result;
  std::vector<ForwardSequence>& sequences = request.forward.sequences;
  size_t longest = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i].tokens.empty())
      sequences[i].tokens = model_->tokenize(request.texts[i], request.add_special, /*parse_special=*/false);
    result.tokens.push_back(sequences[i].tokens);
    longest = std::max(longest, sequences[i].tokens.size());
    if (sequences[i].tokens.empty())
      throw_error(ErrorCode::kInvalidArgument, "Sequence ", i, " has no tokens.");
    if (longest > n_ctx_)
      throw_error(ErrorCode::kTokenLimit, "Sequence ", i, " has ", longest, " tokens; at most ", n_ctx_,
                  " are possible (the server's --ctx-size).");
  }
  const bool attention = std::any_of(request.forward.captures.begin(), request.forward.captures.end(),
                                     [](const Place& place) { return place.point == Point::kAttention; });
  const Clock::time_point asked = Clock::now();
  std::unique_ptr<Forward> forward;
  do {
    loop.run_between_iterations(
        [&] {
          const Clock::time_point started = Clock::now();
          if (!forward) {
            result.waited_ms = milliseconds(started - asked);
            forward = std::make_unique<Forward>(context(longest, attention), std::move(request.forward));
          }
          forward->step(cancel);
          result.forward_ms += milliseconds(Clock::now() - started);
        },
        cancel);
  } while (forward->done() < forward->total());
  result.forward = forward->take();
  return result;
}

/// A context for sequences of this length.
Passes& ResidentForward::context(size_t tokens, bool attention) {
  std::unique_ptr<Passes>& kept = attention ? attention_context_ : context_;
  if (kept && tokens <= kept->n_ctx()) return *kept;
  uint32_t size = kLeastTokens;
  while (size < tokens) size *= 2;
  ContextOptions options;
  options.n_ctx = std::max(std::min(size, n_ctx_), static_cast<uint32_t>(tokens));
  options.n_batch =
      batch_tokens(model_->info(), model_->info().n_params <= kSmallModel ? kSmallModelBatch : kUsualBatch);
  // Attention weights need a text in one batch.
  if (attention) options.n_batch = options.n_ctx;
  options.n_seq_max =
      model_->info().recurrent || model_->info().hybrid ? kMostRecurrentSequences : kMostSequences;
  options.n_threads = threads_;
  options.keep_attention = attention;
  options.edits = edits_;
  kept.reset();  // before there are two
  kept = std::make_unique<Passes>(model_, options);
  return *kept;
}

}  // namespace tapline
