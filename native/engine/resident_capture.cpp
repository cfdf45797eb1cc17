#include "engine/resident_capture.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tapline {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

ContextOptions context_options(uint32_t max_tokens, int threads, const std::string& edits) {
  ContextOptions options;
  options.n_ctx = max_tokens;
  options.n_threads = threads;
  options.edits = edits;
  return options;
}

}  // namespace

ResidentCapture::ResidentCapture(std::shared_ptr<Model> model, uint32_t max_tokens, int threads,
                                 const std::string& edits)
    : model_(std::move(model)), context_(model_, context_options(max_tokens, threads, edits)) {}

CaptureResult ResidentCapture::run(GenerationLoop& loop, const CaptureRequest& request,
                                   const CancelToken& cancel) {
  CaptureResult result;
  result.tokens = model_->tokenize(request.prompt, /*special=*/true, /*parse_special=*/false);
  const auto count = static_cast<int>(result.tokens.size());
  if (count == 0) throw Error(ErrorCode::kInvalidArgument, "The prompt has no tokens.");
  if (count > request.max_tokens)
    throw_error(ErrorCode::kTokenLimit, "The prompt has ", count, " tokens; at most ", request.max_tokens,
                " are accepted here.");
  for (const int layer : request.layers) model_->check_layer(layer);
  const Clock::time_point asked = Clock::now();
  loop.run_between_iterations(
      [&] {
        const Clock::time_point started = Clock::now();
        result.waited_ms = milliseconds(started - asked);
        forward(request, result);
        result.forward_ms = milliseconds(Clock::now() - started);
      },
      cancel);
  result.pieces.reserve(result.tokens.size());
  for (const llama_token token : result.tokens) result.pieces.push_back(model_->piece(token));
  for (const llama_token token : result.next.ids) result.next_pieces.push_back(model_->piece(token));
  return result;
}

void ResidentCapture::forward(const CaptureRequest& request, CaptureResult& result) {
  context_.reset();
  const size_t chunk = context_.n_batch();
  for (size_t start = 0; start < result.tokens.size(); start += chunk) {
    const size_t end = std::min(result.tokens.size(), start + chunk);
    AdvanceRequest pass;
    pass.tokens.assign(result.tokens.begin() + start, result.tokens.begin() + end);
    pass.layers = request.layers;
    pass.keep_states = request.state != CapturedState::kNone;
    if (end == result.tokens.size()) pass.next_top = request.next_top;
    AdvanceResult part = advance(context_, pass, CancelToken());
    keep_state(request, part, result);
    if (start == 0) {
      result.layers = std::move(part.layers);
    } else {
      for (size_t i = 0; i < result.layers.size(); ++i) {
        result.layers[i].rows += part.layers[i].rows;
        append(result.layers[i].norms, part.layers[i].norms);
      }
    }
    result.next = std::move(part.next);
  }
  if (request.state == CapturedState::kMean) take_means(result);
}

/// Replaces the saved rows of each layer with their mean.
void ResidentCapture::take_means(CaptureResult& result) {
  const auto width = static_cast<size_t>(model_->info().n_embd);
  const size_t tokens = result.tokens.size();
  const size_t bos = bos_tokens(model_->info().bos, result.tokens);
  for (std::vector<float>& state : result.states) {
    std::vector<float> mean(width);
    result.excluded.push_back(mean_of_counted(state.data(), tokens, width, bos, 0, mean.data()));
    state = std::move(mean);
  }
}

/// Adds a chunk's rows to the saved state of each layer.
void ResidentCapture::keep_state(const CaptureRequest& request, AdvanceResult& part, CaptureResult& result) {
  if (request.state == CapturedState::kNone) return;
  const auto width = static_cast<size_t>(model_->info().n_embd);
  result.states.resize(part.layers.size());
  for (size_t i = 0; i < part.layers.size(); ++i) {
    const LayerStates& layer = part.layers[i];
    std::vector<float>& state = result.states[i];
    if (request.state == CapturedState::kLastToken) {
      state.assign(layer.states.end() - static_cast<std::ptrdiff_t>(width), layer.states.end());
    } else {
      append(state, layer.states);
    }
    part.layers[i].states.clear();
  }
}

}  // namespace tapline
