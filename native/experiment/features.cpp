#include <algorithm>
#include <string>

#include "experiment/context.h"
#include "experiment/token_batch.h"

namespace tapline {

FeatureResult Context::features(const FeatureRequest& request, const CancelToken& cancel,
                                const std::function<void(size_t, size_t)>& progress) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto width = static_cast<size_t>(model_->info().n_embd);
  const size_t total = request.sequences.size();
  const bool bidirectional = llama_get_memory(ctx_) == nullptr;
  const size_t most_sequences = bidirectional || !stream_.packs_sequences ? 1 : n_seq_max_;
  FeatureResult result;
  result.layers = check_layers(request.layers);
  if (result.layers.empty()) throw Error(ErrorCode::kInvalidArgument, "There are no layers to capture.");
  for (size_t i = 0; i < total; ++i) {
    check_tokens(request.sequences[i]);
    if (request.sequences[i].size() > n_batch_) {
      throw Error(ErrorCode::kTokenLimit, "A sequence has at most " + std::to_string(n_batch_) +
                                              " tokens, number " + std::to_string(i) + " has " +
                                              std::to_string(request.sequences[i].size()) + ".");
    }
  }
  result.states.assign(result.layers.size(), std::vector<float>(total * width));
  std::vector<TapPoint> points;
  for (const int layer : result.layers) points.push_back({layer, true, nullptr});

  size_t done = 0;
  while (done < total) {
    cancel.check();
    // As many whole sequences as fit: fewer, larger batches use the machine best.
    clear_memory();
    TokenBatch batch(n_batch_);
    std::vector<size_t> last_of;  // batch index of each packed sequence's last token
    size_t next = done;
    while (next < total && last_of.size() < most_sequences) {
      const std::vector<llama_token>& tokens = request.sequences[next];
      if (batch.size() + tokens.size() > std::min(n_batch_, n_ctx_)) break;
      for (size_t i = 0; i < tokens.size(); ++i) {
        batch.add(tokens[i], static_cast<uint32_t>(i), static_cast<llama_seq_id>(last_of.size()),
                  bidirectional || i + 1 == tokens.size());
      }
      last_of.push_back(batch.size() - 1);
      ++next;
    }
    const auto sink = [&](const TappedRows& tapped) {
      const auto at = std::lower_bound(result.layers.begin(), result.layers.end(), tapped.layer);
      std::vector<float>& states = result.states[static_cast<size_t>(at - result.layers.begin())];
      for (size_t row = 0; row < tapped.count; ++row) {
        const auto index = static_cast<size_t>((*tapped.indices)[row]);
        const auto sequence = std::lower_bound(last_of.begin(), last_of.end(), index);
        if (sequence == last_of.end() || *sequence != index) continue;
        const size_t target = done + static_cast<size_t>(sequence - last_of.begin());
        std::copy_n(tapped.values + row * width, width, states.data() + target * width);
      }
    };
    run_tapped(batch, points, /*leave_early=*/true, sink, cancel);
    done = next;
    if (progress) progress(done, total);
  }
  clear_memory();
  return result;
}

}  // namespace tapline
