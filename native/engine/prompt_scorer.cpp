#include "engine/prompt_scorer.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tapline {

namespace {

/// The initial size of the context, in tokens; it grows by doubling.
constexpr size_t kLeastTokens = 256;

}  // namespace

PromptScorer::PromptScorer(std::shared_ptr<Model> model, uint32_t n_ctx, int threads, std::string edits)
    : model_(std::move(model)), n_ctx_(n_ctx), threads_(threads), edits_(std::move(edits)) {}

ScoreResult PromptScorer::run(GenerationLoop& loop, const ScoreRequest& request, const CancelToken& cancel) {
  const size_t count = request.tokens.size();
  if (count > n_ctx_)
    throw_error(ErrorCode::kTokenLimit, "The prompt has ", count, " tokens; the context holds ", n_ctx_, ".");
  model_->check_tokens(request.tokens);
  ScoreResult result;
  result.top = std::clamp(request.top, 0, model_->info().n_vocab);
  // The row of the last token predicts what follows the prompt, which is not scored.
  for (size_t done = 0; done + 1 < count;) {
    loop.run_between_iterations(
        [&] {
          if (done == 0) prepare(count);
          const size_t rows = std::min<size_t>(context_->n_batch(), count - 1 - done);
          const auto first = request.tokens.begin() + static_cast<std::ptrdiff_t>(done);
          AdvanceRequest pass;
          pass.tokens.assign(first, first + static_cast<std::ptrdiff_t>(rows));
          pass.scored.assign(first + 1, first + 1 + static_cast<std::ptrdiff_t>(rows));
          pass.scored_top = result.top;
          pass.all_rows = false;  // nothing is captured
          pass.edits = request.edits;
          pass.prompt = static_cast<uint32_t>(count);
          add(advance(*context_, pass, CancelToken()), !request.edits.empty(), result);
          done += rows;
        },
        cancel);
  }
  add_pieces(request, result);
  return result;
}

/// Prepares an empty context for a number of tokens.
void PromptScorer::prepare(size_t tokens) {
  if (context_ && tokens <= context_->n_ctx()) {
    context_->reset();
    return;
  }
  size_t size = kLeastTokens;
  while (size < tokens) size *= 2;
  ContextOptions options;
  options.n_ctx = static_cast<uint32_t>(std::min<size_t>(size, std::max<size_t>(n_ctx_, tokens)));
  options.n_threads = threads_;
  options.edits = edits_;
  context_.reset();  // before there are two
  context_ = std::make_unique<Passes>(model_, options);
  if (!context_->causal()) {
    context_.reset();
    throw Error(
        ErrorCode::kUnsupportedArchitecture,
        "This architecture attends in both directions, so tokens are not predicted from earlier ones.");
  }
}

void PromptScorer::add(const AdvanceResult& part, bool edited, ScoreResult& result) {
  for (const double score : part.log_probabilities) {
    if (!std::isnan(score)) continue;
    if (edited)
      throw Error(ErrorCode::kInvalidArgument,
                  "The interventions made the model's numbers non-finite: the change is too large.");
    throw Error(ErrorCode::kCompute,
                "The model's probabilities are not finite; the model file may be damaged.");
  }
  append(result.log_probabilities, part.log_probabilities);
  append(result.top_ids, part.scored_top_ids);
  append(result.top_log_probabilities, part.scored_top_log_probabilities);
}

void PromptScorer::add_pieces(const ScoreRequest& request, ScoreResult& result) const {
  result.ids = result.top_ids;
  append(result.ids, request.tokens);
  std::sort(result.ids.begin(), result.ids.end());
  result.ids.erase(std::unique(result.ids.begin(), result.ids.end()), result.ids.end());
  result.pieces.reserve(result.ids.size());
  for (const llama_token id : result.ids) result.pieces.push_back(model_->piece(id));
}

}  // namespace tapline
