#include "experiment/embedding_input.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "capture/weight_row.h"

namespace tapline {

namespace {

/// What llama.cpp v0.5.0 does not refuse but abort the process for.
bool aborts(const Model& model) {
  const std::string& architecture = model.info().architecture;
  if (architecture == "granite-switch") return true;
  const bool glm = architecture == "glm4" || architecture == "glm4moe";
  return glm && llama_model_rope_type(model.handle()) != LLAMA_ROPE_TYPE_MROPE;
}

/// A token, what stands for another one, and a third token: the logits after both.
EmbeddingInput prove(Passes& passes, const CancelToken& cancel) {
  const ModelInfo& info = passes.info();
  const std::string subject = "The architecture '" + info.architecture + "'";
  if (!passes.causal() || info.has_encoder)
    return {false, subject + " does not generate text token by token, so that it has no words for a row."};
  if (aborts(passes.model()))
    return {false, subject + " takes tokens only: llama.cpp has no rows in their place."};
  const ggml_tensor* embeddings = passes.model().tensor("token_embd.weight");
  if (embeddings == nullptr || info.n_vocab < 8)
    return {false, subject + " has no matrix of token embeddings."};
  const auto vocabulary = static_cast<size_t>(info.n_vocab);
  const auto logits = [&](const Filling& filling) {
    passes.clear_memory();
    std::vector<float> found;
    const auto keep = [&](const float* row) { found.insert(found.end(), row, row + vocabulary); };
    compute_tokens(passes, {info.n_vocab / 5}, 0, /*answer=*/false, cancel);
    keep(compute_filling(passes, filling, 1, /*answer=*/true, cancel));
    keep(compute_tokens(passes, {info.n_vocab / 7}, 2, /*answer=*/true, cancel));
    return found;
  };
  EmbeddingInput found{true, {}, 1};
  for (const llama_token token : {info.n_vocab / 3, info.n_vocab - 2}) {
    const WeightRow own = weight_row(embeddings, token, info.n_embd);
    if (!own.reason.empty()) return {false, "Token embeddings cannot be read: " + own.reason + "."};
    const std::vector<float> typed = logits({{}, token});
    if (std::any_of(typed.begin(), typed.end(), [](float logit) { return std::isnan(logit); }))
      return {false, "The model's logits are not finite."};
    const auto same = [&](float scale) {
      Filling filling{own.values, -1};
      for (float& value : filling.row) value *= scale;
      const std::vector<float> given = logits(filling);
      return std::memcmp(given.data(), typed.data(), typed.size() * sizeof(float)) == 0;
    };
    const bool first = token == info.n_vocab / 3;
    if (same(found.token_scale)) continue;
    if (first && same(std::sqrt(static_cast<float>(info.n_embd)))) {
      found.token_scale = std::sqrt(static_cast<float>(info.n_embd));
      continue;
    }
    return {false, subject +
                       " computes a row in a token's place otherwise than the token: a token's own embedding "
                       "does not give what the token gives."};
  }
  return found;
}

}  // namespace

EmbeddingInput embedding_input(Passes& passes, const CancelToken& cancel) {
  const auto locked = passes.lock();
  return passes.once([&] {
    const Passes::ClearAtEnd clear{passes};
    return prove(passes, cancel);
  });
}

const float* compute_tokens(Passes& passes, const std::vector<llama_token>& tokens, size_t position,
                            bool answer, const CancelToken& cancel) {
  TokenBatch batch(passes.n_batch());
  for (size_t i = 0; i < tokens.size(); i += batch.size()) {
    const size_t count = std::min<size_t>(tokens.size() - i, passes.n_batch());
    const bool last = i + count == tokens.size();
    batch.clear();
    passes.add(batch, &tokens[i], count, position + i, 0, answer && last);
    passes.run(batch, {}, cancel);
    if (last && answer) return passes.logits(count - 1);
  }
  return nullptr;
}

const float* compute_filling(Passes& passes, const Filling& filling, size_t position, bool answer,
                             const CancelToken& cancel) {
  if (filling.empty()) return nullptr;
  if (filling.row.empty()) return compute_tokens(passes, {filling.token}, position, answer, cancel);
  const auto width = static_cast<size_t>(llama_model_n_embd_inp(passes.model().handle()));
  passes.run(RowBatch(filling.row, width, static_cast<uint32_t>(position), 0, answer), cancel);
  return answer ? passes.logits(0) : nullptr;
}

}  // namespace tapline
