#include "experiment/explain.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "capture/weight_row.h"
#include "experiment/next_token.h"
#include "experiment/passes.h"
#include "experiment/token_batch.h"

namespace tapline {

namespace {

/// What llama.cpp v0.5.0 does not refuse but abort the process for.
bool aborts(const Model& model) {
  const std::string& architecture = model.info().architecture;
  if (architecture == "granite-switch") return true;
  const bool glm = architecture == "glm4" || architecture == "glm4moe";
  return glm && llama_model_rope_type(model.handle()) != LLAMA_ROPE_TYPE_MROPE;
}

bool all_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

/// Where the prompt's own tokens lie in a sequence.
struct Places {
  explicit Places(const ExplainRequest& request, const Filling& filling)
      : filled(static_cast<uint32_t>(request.before.size())),
        after(filled + (filling.row.empty() && filling.token < 0 ? 0 : 1)),
        answer(after + static_cast<uint32_t>(request.after.size())) {}

  uint32_t filled;
  uint32_t after;
  uint32_t answer;
};

}  // namespace

const float* Passes::logits_of(size_t batch_row) {
  const float* logits = llama_get_logits_ith(ctx_, static_cast<int32_t>(batch_row));
  if (logits == nullptr) throw Error(ErrorCode::kUnsupportedArchitecture, "The model computes no logits.");
  return logits;
}

const float* Passes::type(const std::vector<llama_token>& tokens, uint32_t position, bool output,
                          const CancelToken& cancel) {
  TokenBatch batch(n_batch_);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool last = i + 1 == tokens.size();
    batch.add(tokens[i], position + static_cast<uint32_t>(i), 0, output && (last || stream_.heads_every_row));
    if (batch.size() < n_batch_ && !last) continue;
    run_edited(batch, {}, cancel);
    if (last && output) return logits_of(batch.size() - 1);
    batch.clear();
  }
  return nullptr;
}

const float* Passes::fill(const Filling& filling, uint32_t position, bool output, const CancelToken& cancel) {
  if (filling.row.empty()) {
    if (filling.token < 0) return nullptr;
    return type({filling.token}, position, output, cancel);
  }
  const RowBatch batch(filling.row, static_cast<size_t>(llama_model_n_embd_inp(model_->handle())), position,
                       0, output);
  doubtful_ = true;
  try {
    decode(batch.raw, cancel);
  } catch (...) {
    clear_memory();
    throw;
  }
  return output ? logits_of(0) : nullptr;
}

/// A token, what stands for another one, and a third token: the logits behind both.
EmbeddingInput Passes::prove_embedding_input(const CancelToken& cancel) {
  const ModelInfo& info = model_->info();
  const std::string subject = "The architecture '" + info.architecture + "'";
  if (!causal() || info.has_encoder)
    return {false, subject + " does not generate text token by token, so that it has no words for a row."};
  if (aborts(*model_)) return {false, subject + " takes tokens only: llama.cpp has no rows in their place."};
  const ggml_tensor* embeddings = model_->tensor("token_embd.weight");
  if (embeddings == nullptr || info.n_vocab < 8)
    return {false, subject + " has no matrix of token embeddings."};
  const auto vocabulary = static_cast<size_t>(info.n_vocab);
  const auto logits = [&](const Filling& filling) {
    clear_memory();
    std::vector<float> found;
    const auto keep = [&](const float* row) { found.insert(found.end(), row, row + vocabulary); };
    type({info.n_vocab / 5}, 0, /*output=*/false, cancel);
    keep(fill(filling, 1, /*output=*/true, cancel));
    keep(type({info.n_vocab / 7}, 2, /*output=*/true, cancel));
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

EmbeddingInput Passes::embedding_input(const CancelToken& cancel) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!embedding_input_) {
    embedding_input_ = std::make_unique<EmbeddingInput>(prove_embedding_input(cancel));
    clear_memory();
  }
  return *embedding_input_;
}

void Passes::check_explain(const ExplainRequest& request) const {
  model_->check_tokens(request.before);
  model_->check_tokens(request.after);
  const auto width = static_cast<size_t>(model_->info().n_embd);
  size_t filled = 0;
  for (const Filling& filling : request.fillings) {
    if (!filling.row.empty() || filling.token >= 0) filled = 1;
    if (filling.row.empty()) {
      if (filling.token >= 0) model_->check_tokens({filling.token});
      continue;
    }
    if (filling.row.size() != width) {
      throw Error(ErrorCode::kInvalidArgument,
                  "A row of " + std::to_string(filling.row.size()) +
                      " values cannot stand for a token's embedding, which has " + std::to_string(width) +
                      ".");
    }
    if (!all_finite(filling.row)) throw Error(ErrorCode::kInvalidArgument, "A row's values must be finite.");
  }
  if (request.fillings.empty() || request.max_tokens < 1 || request.samples < 1)
    throw Error(ErrorCode::kInvalidArgument, "An explanation is of at least one row, in at least one token.");
  const bool nothing = std::any_of(request.fillings.begin(), request.fillings.end(),
                                   [](const Filling& one) { return one.row.empty() && one.token < 0; });
  if (nothing && request.after.empty())
    throw Error(ErrorCode::kInvalidArgument, "Where nothing stands in the place, tokens must follow it.");
  const size_t total =
      request.before.size() + filled + request.after.size() + static_cast<size_t>(request.max_tokens);
  if (total > n_ctx_) {
    throw Error(ErrorCode::kTokenLimit, "A prompt with its answer needs " + std::to_string(total) +
                                            " tokens; the context holds " + std::to_string(n_ctx_) + ".");
  }
  const size_t wanted = request.draws.empty()
                            ? 0
                            : static_cast<size_t>(request.samples) * static_cast<size_t>(request.max_tokens);
  const bool in_range = std::all_of(request.draws.begin(), request.draws.end(),
                                    [](double draw) { return draw >= 0 && draw < 1; });
  const bool warm = std::isfinite(request.temperature) && request.temperature > 0;
  if (request.draws.size() != wanted || !in_range || (wanted > 0 && !warm))
    throw Error(ErrorCode::kInvalidArgument,
                "Drawn tokens need a temperature above 0 and a number from 0 to below 1 each.");
}

std::vector<Explanation> Passes::explain(const ExplainRequest& request, const CancelToken& cancel,
                                         const std::function<void(size_t, size_t)>& progress) {
  const EmbeddingInput input = embedding_input(cancel);
  const std::lock_guard<std::mutex> lock(mutex_);
  check_explain(request);
  if (!input.supported) throw Error(ErrorCode::kUnsupportedArchitecture, input.reason);
  const int n_vocab = model_->info().n_vocab;
  const auto most = static_cast<size_t>(request.max_tokens);
  const auto samples = static_cast<size_t>(request.samples);
  const size_t total = request.fillings.size() * samples * most;
  size_t done = 0;
  const Forgetting forgetting{*this};
  clear_memory();
  // What is behind a place is forgotten again for the next filling, or sample. Recurrent states and sliding
  // windows have forgotten what was before it, too, so that there the prompt is computed once more.
  const bool rewinds = shares_prefixes(request.before.size() + 1 + request.after.size() + most);
  bool begun = false;
  const auto back_to = [&](uint32_t position) {
    llama_memory_t memory = llama_get_memory(ctx_);
    if (begun && rewinds && position > 0 &&
        llama_memory_seq_rm(memory, 0, static_cast<llama_pos>(position), -1))
      return true;
    clear_memory();
    return false;
  };

  std::vector<Explanation> explanations;
  for (const Filling& filling : request.fillings) {
    const Places places(request, filling);
    const auto prompt = [&](bool from_place) {
      if (!from_place) type(request.before, 0, /*output=*/false, cancel);
      begun = true;
      const float* at_place = fill(filling, places.filled, request.after.empty(), cancel);
      return request.after.empty() ? at_place : type(request.after, places.after, /*output=*/true, cancel);
    };
    const float* row = prompt(back_to(places.filled));
    const std::vector<float> first(row, row + n_vocab);
    Explanation found;
    for (size_t sample = 0; sample < samples; ++sample) {
      if (sample > 0 && !back_to(places.answer)) prompt(/*from_place=*/false);
      Answer answer;
      const float* logits = first.data();
      const double* draws = request.draws.empty() ? nullptr : request.draws.data() + sample * most;
      for (;;) {
        const size_t n = answer.tokens.size();
        const llama_token token = draws == nullptr
                                      ? most_probable(logits, n_vocab)
                                      : drawn_token(logits, n_vocab, request.temperature, draws[n]);
        if (token < 0) {
          doubtful_ = true;
          throw Error(ErrorCode::kCompute,
                      "The logits are not finite: the row is too long, or the model file is damaged.");
        }
        answer.ended = llama_vocab_is_eog(model_->vocab(), token);
        if (answer.ended) break;
        answer.tokens.push_back(token);
        if (progress) progress(++done, total);
        if (answer.tokens.size() == most) break;
        logits = type({token}, places.answer + static_cast<uint32_t>(n), /*output=*/true, cancel);
      }
      done = (explanations.size() * samples + sample + 1) * most;
      if (progress) progress(done, total);
      found.answers.push_back(std::move(answer));
    }
    if (request.keep_logits) found.logits = first;
    explanations.push_back(std::move(found));
  }
  return explanations;
}

}  // namespace tapline
