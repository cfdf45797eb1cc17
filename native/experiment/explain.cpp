#include "experiment/explain.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "capture/weight_row.h"
#include "experiment/checks.h"
#include "experiment/next_token.h"

namespace tapline {

namespace {

/// Models for which llama.cpp v0.5.0 aborts the process instead of rejecting the batch.
bool aborts(const Model& model) {
  const std::string& architecture = model.info().architecture;
  if (architecture == "granite-switch") return true;
  const bool glm = architecture == "glm4" || architecture == "glm4moe";
  return glm && llama_model_rope_type(model.handle()) != LLAMA_ROPE_TYPE_MROPE;
}

/// Continues sequence 0 after its first `position` tokens; returns the next token's logits on request.
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

/// Compares the logits after a token and its embedding as a row, between two other tokens.
EmbeddingInput prove(Passes& passes, const CancelToken& cancel) {
  const ModelInfo& info = passes.info();
  const std::string subject = "The architecture '" + info.architecture + "'";
  if (!passes.causal() || info.has_encoder)
    return {false, subject + " does not generate text token by token."};
  if (aborts(passes.model()))
    return {false, subject + " accepts only tokens: llama.cpp does not support embeddings for it."};
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
    return {false, subject + " computes a token's embedding and the token itself differently."};
  }
  return found;
}

void check_request(const Passes& passes, const ExplainRequest& request) {
  passes.model().check_tokens(request.before);
  passes.model().check_tokens(request.after);
  const auto width = static_cast<size_t>(passes.info().n_embd);
  size_t filled = 0;
  for (const Filling& filling : request.fillings) {
    if (!filling.empty()) filled = 1;
    if (filling.row.empty()) {
      if (filling.token >= 0) passes.model().check_tokens({filling.token});
      continue;
    }
    if (filling.row.size() != width)
      throw_error(ErrorCode::kInvalidArgument, "A row must have ", width,
                  " values, as a token's embedding, got ", filling.row.size(), ".");
    if (!all_finite(filling.row.data(), filling.row.size()))
      throw Error(ErrorCode::kInvalidArgument, "A row's values must be finite.");
  }
  if (request.fillings.empty() || request.max_tokens < 1 || request.samples < 1)
    throw Error(ErrorCode::kInvalidArgument, "An explanation needs at least one row, sample and token.");
  const bool nothing = std::any_of(request.fillings.begin(), request.fillings.end(),
                                   [](const Filling& one) { return one.empty(); });
  if (nothing && request.after.empty())
    throw Error(ErrorCode::kInvalidArgument, "An empty filling needs tokens after it.");
  const size_t total =
      request.before.size() + filled + request.after.size() + static_cast<size_t>(request.max_tokens);
  if (total > passes.n_ctx())
    throw_error(ErrorCode::kTokenLimit, "A prompt with its answer needs ", total,
                " tokens; the context holds ", passes.n_ctx(), ".");
  const size_t wanted = request.draws.empty()
                            ? 0
                            : static_cast<size_t>(request.samples) * static_cast<size_t>(request.max_tokens);
  const bool in_range = std::all_of(request.draws.begin(), request.draws.end(),
                                    [](double draw) { return draw >= 0 && draw < 1; });
  const bool warm = std::isfinite(request.temperature) && request.temperature > 0;
  if (request.draws.size() != wanted || !in_range || (wanted > 0 && !warm))
    throw Error(ErrorCode::kInvalidArgument,
                "Sampling needs a temperature above 0, and for each token a number from 0 to below 1.");
}

/// Answers one filling after another in one sequence.
class Explain {
 public:
  Explain(Passes& passes, const ExplainRequest& request, const CancelToken& cancel,
          const CountProgress& progress)
      : passes_(passes), request_(request), cancel_(cancel), progress_(progress) {}

  std::vector<Explanation> run() {
    const Passes::ClearAtEnd clear{passes_};
    passes_.clear_memory();
    std::vector<Explanation> explanations;
    for (const Filling& filling : request_.fillings) {
      const size_t place = request_.before.size();
      const size_t end = place + (filling.empty() ? 0 : 1) + request_.after.size();
      const float* row = compute_prompt(filling, rewind(place));
      const std::vector<float> first(row, row + passes_.info().n_vocab);
      Explanation found;
      for (size_t sample = 0; sample < samples_; ++sample) {
        if (sample > 0 && !rewind(end)) compute_prompt(filling, /*begun=*/false);
        found.answers.push_back(answer(first.data(), sample, end));
        done_ = (explanations.size() * samples_ + sample + 1) * most_;
        progress_(done_, total_);
      }
      if (request_.keep_logits) found.logits = first;
      explanations.push_back(std::move(found));
    }
    return explanations;
  }

 private:
  /// Removes everything after a position, for the next filling or sample. Returns false if that is impossible
  /// and everything was removed, so that the prompt must be computed again.
  bool rewind(size_t position) {
    if (begun_ && rewinds_ && position > 0 &&
        llama_memory_seq_rm(passes_.memory(), 0, static_cast<llama_pos>(position), -1))
      return true;
    passes_.clear_memory();
    return false;
  }

  /// The logits after the prompt; with `begun`, the memory has the tokens before the filling.
  const float* compute_prompt(const Filling& filling, bool begun) {
    const size_t place = request_.before.size();
    if (!begun) compute_tokens(passes_, request_.before, 0, /*answer=*/false, cancel_);
    begun_ = true;
    const float* at_place = compute_filling(passes_, filling, place, request_.after.empty(), cancel_);
    if (request_.after.empty()) return at_place;
    return compute_tokens(passes_, request_.after, place + (filling.empty() ? 0 : 1), /*answer=*/true,
                          cancel_);
  }

  Answer answer(const float* logits, size_t sample, size_t position) {
    const int n_vocab = passes_.info().n_vocab;
    const double* draws = request_.draws.empty() ? nullptr : request_.draws.data() + sample * most_;
    Answer answer;
    for (;;) {
      const size_t n = answer.tokens.size();
      const llama_token token = draws == nullptr
                                    ? most_probable(logits, n_vocab)
                                    : drawn_token(logits, n_vocab, request_.temperature, draws[n]);
      if (token < 0) {
        passes_.taint();
        throw Error(ErrorCode::kCompute,
                    "The logits are not finite: the row is too long, or the model file is damaged.");
      }
      answer.ended = llama_vocab_is_eog(passes_.model().vocab(), token);
      if (answer.ended) return answer;
      answer.tokens.push_back(token);
      progress_(++done_, total_);
      if (answer.tokens.size() == most_) return answer;
      logits = compute_tokens(passes_, {token}, position + n, /*answer=*/true, cancel_);
    }
  }

  Passes& passes_;
  const ExplainRequest& request_;
  const CancelToken& cancel_;
  const CountProgress& progress_;
  const size_t most_ = static_cast<size_t>(request_.max_tokens);
  const size_t samples_ = static_cast<size_t>(request_.samples);
  const size_t total_ = request_.fillings.size() * samples_ * most_;
  const bool rewinds_ = passes_.keeps_beginnings(request_.before.size() + 1 + request_.after.size() + most_);
  bool begun_ = false;
  size_t done_ = 0;  // tokens of answers
};

}  // namespace

EmbeddingInput embedding_input(Passes& passes, const CancelToken& cancel) {
  const auto locked = passes.lock();
  return passes.once([&] {
    const Passes::ClearAtEnd clear{passes};
    return prove(passes, cancel);
  });
}

std::vector<Explanation> explain(Passes& passes, const ExplainRequest& request, const CancelToken& cancel,
                                 const CountProgress& progress) {
  const EmbeddingInput input = embedding_input(passes, cancel);
  const auto locked = passes.lock();
  check_request(passes, request);
  if (!input.supported) throw Error(ErrorCode::kUnsupportedArchitecture, input.reason);
  return Explain(passes, request, cancel, progress).run();
}

}  // namespace tapline
