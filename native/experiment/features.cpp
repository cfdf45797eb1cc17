#include <algorithm>
#include <cmath>
#include <string>

#include "experiment/context.h"
#include "experiment/layer_order.h"
#include "experiment/token_batch.h"

namespace tapline {

namespace {

struct Broken {
  size_t sequence;
  int layer;
};

/// The first of the sequences [first, end) with a value that is not finite; `end` where there is none.
Broken first_not_finite(const FeatureResult& result, size_t first, size_t end, size_t width) {
  for (size_t sequence = first; sequence < end; ++sequence) {
    for (size_t l = 0; l < result.layers.size(); ++l) {
      const float* row = result.states[l].data() + sequence * width;
      if (!std::all_of(row, row + width, [](float value) { return std::isfinite(value); }))
        return {sequence, result.layers[l]};
    }
  }
  return {end, -1};
}

}  // namespace

FeatureResult Context::features(const FeatureRequest& request, const CancelToken& cancel,
                                const std::function<void(size_t, size_t)>& progress) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto width = static_cast<size_t>(model_->info().n_embd);
  const size_t total = request.sequences.size();
  const bool bidirectional = !causal();
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
  size_t alone_until = 0;  // sequences before this one are computed one at a time
  while (done < total) {
    cancel.check();
    // As many whole sequences as fit: fewer, larger batches use the machine best.
    clear_memory();
    TokenBatch batch(n_batch_);
    std::vector<size_t> last_of;  // batch index of each packed sequence's last token
    size_t next = done;
    const size_t most = done < alone_until ? 1 : most_sequences;
    while (next < total && last_of.size() < most) {
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
    const auto broken = first_not_finite(result, done, next, width);
    if (broken.sequence < next) {
      // Where an architecture multiplies what a row must not see by zero, one text's NaN is its neighbours',
      // too.
      doubtful_ = true;
      if (next - done > 1) {
        alone_until = next;
        continue;
      }
      clear_memory();
      throw Error(ErrorCode::kCompute, "The output of block " + std::to_string(broken.layer) +
                                           " is not finite at the last token of text " +
                                           std::to_string(broken.sequence) +
                                           "; the model file may be damaged.");
    }
    done = next;
    if (progress) progress(done, total);
  }
  clear_memory();
  result.states = in_order_of(request.layers, result.layers, std::move(result.states));
  result.layers = request.layers;
  return result;
}

}  // namespace tapline
