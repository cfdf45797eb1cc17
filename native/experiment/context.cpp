#include "experiment/context.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "capture/softmax.h"
#include "experiment/layer_order.h"
#include "experiment/token_batch.h"

namespace tapline {

namespace {

/// Batch size by default: enough rows to use the machine, few enough that their logits stay within 160 MiB
/// when the last block has to compute every row. A prompt that one batch holds is not split: the rest of a
/// split one, a few rows, would cost as much time as many.
uint32_t default_batch(int n_vocab, uint32_t n_ctx) {
  const auto by_logits = static_cast<uint32_t>((40 << 20) / std::max(1, n_vocab));
  return std::min(n_ctx, std::clamp<uint32_t>(by_logits, 64, 256));
}

/// `first` is the place in its text of the layer's first row.
void check_finite(const LayerStates& layer, size_t first) {
  for (size_t row = 0; row < layer.norms.size(); ++row) {
    if (std::isfinite(layer.norms[row])) continue;
    throw Error(ErrorCode::kCompute, "The output of block " + std::to_string(layer.layer) +
                                         " is not finite at token " + std::to_string(first + row) +
                                         "; the model file may be damaged.");
  }
}

/// Minus infinity is what some models give to what cannot be said.
bool spoiled(const std::vector<float>& logits) {
  return std::any_of(logits.begin(), logits.end(),
                     [](float logit) { return !(logit <= std::numeric_limits<float>::max()); });
}

SplitKind split_kind(const ModelInfo& info) {
  if (info.hybrid) return SplitKind::kEqual;
  return info.recurrent ? SplitKind::kEqualAscending : SplitKind::kInOrder;
}

/// TypeScript has validated; beyond these, llama.cpp would abort the process or ask for all memory.
void check_option(const char* what, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return;
  throw Error(ErrorCode::kInvalidArgument, std::string(what) + " must be " + std::to_string(least) + " to " +
                                               std::to_string(most) + ", got " + std::to_string(value) + ".");
}

bool aborted(void* data) {
  return static_cast<CancelToken*>(data)->cancelled();
}

}  // namespace

Context::Context(std::shared_ptr<Model> model, const ContextOptions& options)
    : model_(std::move(model)), tap_(model_->info().n_embd) {
  check_option("Tokens of a context", options.n_ctx, 1, 1U << 20U);
  check_option("Tokens of a batch", options.n_batch, 0, 1U << 20U);
  check_option("Sequences of a context", options.n_seq_max, 0, llama_max_parallel_sequences());
  check_option("Threads of a context", options.n_threads, 0, GGML_MAX_N_THREADS);
  const ModelInfo& info = model_->info();
  n_threads_ = options.n_threads > 0 ? options.n_threads
                                     : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  n_seq_max_ = std::max(1U, options.n_seq_max);
  // A model that attends in both directions takes a text as one pass, however long.
  const bool whole_text = llama_model_is_diffusion(model_->handle());
  const uint32_t wanted = options.n_batch > 0 ? options.n_batch : default_batch(info.n_vocab, options.n_ctx);
  n_batch_ = whole_text ? options.n_ctx : std::min(wanted, options.n_ctx);
  llama_context_params params = llama_context_default_params();
  params.n_ctx = options.n_ctx;
  params.n_batch = n_batch_;
  params.n_ubatch = n_batch_;
  params.n_seq_max = n_seq_max_;
  params.n_threads = n_threads_;
  params.n_threads_batch = n_threads_;
  params.kv_unified = true;  // sequences share one cache, so a batch keeps its order
  // Weights in F32 are there for exact readings: K and V in F16 move a real model's block outputs by 6e-4
  // (L2), and llama.cpp's flash attention casts both to F16 whatever the cache holds.
  if (llama_model_ftype(model_->handle()) == LLAMA_FTYPE_ALL_F32) {
    params.type_k = params.type_v = GGML_TYPE_F32;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  }
  params.no_perf = true;
  params.cb_eval = BlockTap::on_node;
  params.cb_eval_user_data = &tap_;
  params.abort_callback = aborted;
  params.abort_callback_data = &abort_;
  owner_.reset(llama_init_from_model(model_->handle(), params));
  ctx_ = owner_.get();
  if (ctx_ == nullptr) {
    throw Error(ErrorCode::kOutOfMemory, "A context of " + std::to_string(options.n_ctx) + " tokens for '" +
                                             info.path +
                                             "' could not be created; there may be too little memory.");
  }
  n_ctx_ = llama_n_ctx(ctx_);
  n_batch_ = llama_n_batch(ctx_);
  depth_ = info.n_layer;
  stream_ = find_residual_stream(ctx_, params, *model_);
  tap_.describe(&stream_);
}

Context::~Context() = default;

std::vector<int> Context::check_layers(const std::vector<int>& layers) const {
  if (!layers.empty() && !stream_.supported) throw Error(ErrorCode::kUnsupportedArchitecture, stream_.reason);
  std::vector<int> sorted = layers;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    model_->check_layer(sorted[i]);
    if (i > 0 && sorted[i] == sorted[i - 1])
      throw Error(ErrorCode::kInvalidArgument, "Layer " + std::to_string(sorted[i]) + " is listed twice.");
  }
  return sorted;
}

void Context::check_tokens(const std::vector<llama_token>& tokens) const {
  if (tokens.empty()) throw Error(ErrorCode::kInvalidArgument, "There are no tokens to compute.");
  model_->check_tokens(tokens);
}

void Context::check_edits(const EditPlan& plan) const {
  const auto width = static_cast<size_t>(model_->info().n_embd);
  for (const Edit& edit : plan) {
    check_layers({edit.layer});
    if (!edit.direction) {
      if (edit.kind == EditKind::kAffine) continue;
      throw Error(ErrorCode::kInvalidArgument, "An edit of a projection needs a vector.");
    }
    if (edit.direction->values.size() != width) {
      throw Error(ErrorCode::kInvalidArgument,
                  "An edit's vector has " + std::to_string(edit.direction->values.size()) +
                      " values; the hidden size is " + std::to_string(width) + ".");
    }
  }
}

void Context::run_edited(const TokenBatch& batch, const BatchEdits& edits, const CancelToken& cancel) {
  std::vector<TapPoint> points;
  for (const auto& [layer, rows] : edits.by_layer()) points.push_back({layer, /*read=*/false, &rows});
  run_tapped(batch, std::move(points), /*leave_early=*/false, nullptr, cancel);
}

void Context::run_tapped(const TokenBatch& batch, std::vector<TapPoint> points, bool leave_early,
                         const BlockTap::Sink& sink, const CancelToken& cancel) {
  const std::vector<MicroBatch> micros =
      plan_micro_batches(batch.raw, split_kind(model_->info()), llama_n_ubatch(ctx_));
  try {
    if (leave_early && micros.size() > 1) {
      decode_each(batch, micros, points, sink, cancel);
    } else {
      tap_.arm(std::move(points), leave_early, &micros, sink, cancel);
      decode(batch, cancel);
    }
  } catch (...) {
    tap_.disarm();
    clear_memory();  // part of the pass may be in the cache
    throw;
  }
  tap_.disarm();
}

/// Leaving a micro-batch ends llama_decode, so each gets one of its own. llama.cpp computes the same ones:
/// each holds equally many of the next tokens of its sequences.
void Context::decode_each(const TokenBatch& batch, const std::vector<MicroBatch>& micros,
                          const std::vector<TapPoint>& points, const BlockTap::Sink& sink,
                          const CancelToken& cancel) {
  for (const MicroBatch& micro : micros) {
    TokenBatch part(micro.rows.size());
    for (const int row : micro.rows) {
      part.add(batch.raw.token[row], static_cast<uint32_t>(batch.raw.pos[row]), batch.raw.seq_id[row][0],
               batch.raw.logits[row] != 0);
    }
    const std::vector<MicroBatch> one{micro};
    tap_.arm(points, /*leave_early=*/true, &one, sink, cancel);
    decode(part, cancel);
  }
}

void Context::decode(const TokenBatch& batch, const CancelToken& cancel) {
  abort_ = cancel;
  int status = 0;
  try {
    status = llama_decode(ctx_, batch.raw);
  } catch (const BlockTap::Left&) {
    // as far as was wanted
  } catch (...) {
    llama_synchronize(ctx_);  // what other devices still copy must not meet the next pass
    throw;
  }
  llama_synchronize(ctx_);
  cancel.check();
  if (status == 1) {
    throw Error(ErrorCode::kTokenLimit, "The context of " + std::to_string(n_ctx_) + " tokens is full.");
  }
  if (status != 0)
    throw Error(ErrorCode::kCompute,
                "The forward pass failed (llama_decode: " + std::to_string(status) + ").");
}

void Context::clear_memory() {
  // A cell that is free keeps its numbers, and those of a cell that nobody may attend to are multiplied by
  // zero: what is finite is gone by that, NaN and infinity are not.
  if (llama_memory_t memory = llama_get_memory(ctx_)) llama_memory_clear(memory, /*data=*/doubtful_);
  doubtful_ = false;
  n_past_ = 0;
  depth_ = model_->info().n_layer;
}

Context::Mark Context::mark() {
  Mark mark{n_past_, {}};
  const ModelInfo& info = model_->info();
  if (n_past_ == 0 || !(info.hybrid || info.recurrent)) return mark;
  mark.recurrent.resize(llama_state_seq_get_size_ext(ctx_, 0, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY));
  const size_t written = llama_state_seq_get_data_ext(ctx_, mark.recurrent.data(), mark.recurrent.size(), 0,
                                                      LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
  if (written != mark.recurrent.size())
    throw Error(ErrorCode::kInternal, "The recurrent state of a sequence could not be copied.");
  return mark;
}

void Context::back_to(const Mark& mark) {
  llama_memory_t memory = llama_get_memory(ctx_);
  if (memory == nullptr) return;
  if (mark.n_past == 0) {
    llama_memory_clear(memory, /*data=*/false);
    return;
  }
  const bool restored =
      mark.recurrent.empty() ||
      llama_state_seq_set_data_ext(ctx_, mark.recurrent.data(), mark.recurrent.size(), 0,
                                   LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY) == mark.recurrent.size();
  if (restored && llama_memory_seq_rm(memory, 0, static_cast<llama_pos>(mark.n_past), -1)) return;
  clear_memory();
  throw Error(ErrorCode::kInternal, "The memory of a sequence could not be set back.");
}

void Context::reset() {
  const std::lock_guard<std::mutex> lock(mutex_);
  clear_memory();
}

LogitLens& Context::lens() {
  if (!lens_) {
    const ModelInfo& info = model_->info();
    lens_ =
        std::make_unique<LogitLens>(model_->handle(), stream_.lens, info.n_embd, info.n_vocab, n_threads_);
  }
  return *lens_;
}

void Context::check_scored(const AdvanceRequest& request) const {
  if (request.scored.size() != request.tokens.size()) {
    throw Error(ErrorCode::kInvalidArgument, std::to_string(request.scored.size()) +
                                                 " scored tokens were given for " +
                                                 std::to_string(request.tokens.size()) + " tokens.");
  }
  if (request.next_top > 0 || request.keep_logits) {
    throw Error(ErrorCode::kInvalidArgument, "A pass that scores tokens gives no other answer.");
  }
  for (const llama_token token : request.scored) {
    if (token >= model_->info().n_vocab) {
      throw Error(ErrorCode::kInvalidArgument, "The scored token " + std::to_string(token) +
                                                   " is outside the vocabulary of " +
                                                   std::to_string(model_->info().n_vocab) + " tokens.");
    }
  }
}

std::vector<double> Context::log_probabilities(const std::vector<llama_token>& scored) {
  const int n_vocab = model_->info().n_vocab;
  std::vector<double> out(scored.size());
  for (size_t i = 0; i < scored.size(); ++i) {
    if (scored[i] < 0) continue;
    const float* logits = llama_get_logits_ith(ctx_, static_cast<int32_t>(i));
    if (logits == nullptr) throw Error(ErrorCode::kUnsupportedArchitecture, "The model computes no logits.");
    out[i] = Softmax(logits, n_vocab).log_probability(logits[scored[i]]);
    doubtful_ = doubtful_ || !std::isfinite(out[i]);
  }
  return out;
}

AdvanceResult Context::advance(const AdvanceRequest& request, const CancelToken& cancel) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const ModelInfo& info = model_->info();
  const std::vector<int> layers = check_layers(request.layers);
  check_tokens(request.tokens);
  const auto n = static_cast<uint32_t>(request.tokens.size());
  if (n > n_batch_) {
    throw Error(ErrorCode::kTokenLimit, "A pass takes at most " + std::to_string(n_batch_) + " tokens, got " +
                                            std::to_string(n) + ".");
  }
  if (n_past_ + n > n_ctx_) {
    throw Error(ErrorCode::kTokenLimit, "The context holds " + std::to_string(n_ctx_) + " tokens; " +
                                            std::to_string(n_past_) + " are there and " + std::to_string(n) +
                                            " more were given.");
  }
  const bool bidirectional = llama_get_memory(ctx_) == nullptr;
  if (bidirectional && n_past_ > 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "This architecture attends in both directions, so a text is one pass.");
  }

  if (request.lens_target >= info.n_vocab) {
    throw Error(ErrorCode::kInvalidArgument, "The lens's target " + std::to_string(request.lens_target) +
                                                 " is outside the vocabulary of " +
                                                 std::to_string(info.n_vocab) + " tokens.");
  }
  const size_t width = static_cast<size_t>(info.n_embd);
  const bool scores = !request.scored.empty();
  if (scores) check_scored(request);
  const bool wants_head = request.next_top > 0 || request.keep_logits || scores;
  const int deepest = layers.empty() ? -1 : layers.back();
  const bool at_the_end = deepest == info.n_layer - 1;
  const bool last_rows = request.all_rows && n > 1 && at_the_end;
  // Asking for the outputs of all rows changes the shapes that the last block computes with, and with them
  // the last bits of the answer. So where an answer is wanted, the pass is the one that captures nothing, and
  // rows of the last block that it has dropped are computed by a second one.
  const bool every_output = bidirectional || (last_rows && !wants_head);
  const bool leave_early = !layers.empty() && !wants_head && (at_the_end || request.early_exit);
  const int depth = leave_early ? deepest + 1 : info.n_layer;
  if (depth > depth_) {
    throw Error(ErrorCode::kInvalidArgument, "The earlier tokens were computed through block " +
                                                 std::to_string(depth_ - 1) +
                                                 " only; reset before going deeper.");
  }

  TokenBatch batch(n);
  for (uint32_t i = 0; i < n; ++i) {
    const bool wanted = (i + 1 == n || stream_.heads_every_row) && (wants_head || at_the_end);
    const bool scored = scores && request.scored[i] >= 0;
    batch.add(request.tokens[i], n_past_ + i, 0, every_output || wanted || scored);
  }
  check_edits(request.edits);
  for (const Edit& edit : request.edits) {
    if (std::find(layers.begin(), layers.end(), edit.layer) == layers.end())
      throw Error(ErrorCode::kInvalidArgument, "An edited layer must be among the layers.");
  }

  AdvanceResult result;
  result.effects.resize(request.edits.size());
  BatchEdits edits;
  for (uint32_t i = 0; i < n; ++i) {
    edits.add(request.edits, result.effects, static_cast<int>(i), static_cast<int32_t>(n_past_ + i),
              static_cast<int32_t>(n_past_ + n));
  }
  std::vector<TapPoint> points;
  const size_t rows = request.all_rows ? n : 1;
  // Where only norms are wanted, nothing is copied.
  const bool needs_states = request.keep_states || request.lens_top > 0;
  for (size_t l = 0; l < layers.size(); ++l) {
    std::vector<float> states(needs_states ? rows * width : 0);
    result.layers.push_back({layers[l], rows, std::move(states), std::vector<float>(rows), {}});
    points.push_back({layers[l], true, edits.at(layers[l])});
  }
  size_t taken_at_the_end = 0;  // rows of the last block
  bool second = false;
  const auto sink = [&](const TappedRows& tapped) {
    const auto at = std::lower_bound(layers.begin(), layers.end(), tapped.layer);
    LayerStates& layer = result.layers[static_cast<size_t>(at - layers.begin())];
    if (tapped.layer == info.n_layer - 1) taken_at_the_end += tapped.count;
    for (size_t row = 0; row < tapped.count; ++row) {
      const auto index = static_cast<size_t>((*tapped.indices)[row]);
      if (!request.all_rows && index + 1 != n) continue;
      if (second && index + 1 == n) continue;  // the answering row is the first pass's
      const size_t target = request.all_rows ? index : 0;
      const float* values = tapped.values + row * width;
      layer.norms[target] = static_cast<float>(row_length(values, width));
      if (needs_states) std::copy_n(values, width, layer.states.data() + target * width);
    }
  };

  const Mark before = last_rows && wants_head ? mark() : Mark{};
  doubtful_ = doubtful_ || !request.edits.empty();
  run_tapped(batch, points, leave_early, sink, cancel);
  // The head's numbers are llama.cpp's until the next pass.
  if (scores) {
    result.log_probabilities = log_probabilities(request.scored);
  } else if (wants_head) {
    const float* logits = llama_get_logits_ith(ctx_, static_cast<int32_t>(n) - 1);
    if (logits == nullptr) throw Error(ErrorCode::kUnsupportedArchitecture, "The model computes no logits.");
    result.logits.assign(logits, logits + info.n_vocab);
    doubtful_ = doubtful_ || spoiled(result.logits);
  }
  if (last_rows && taken_at_the_end < n) {
    back_to(before);
    std::fill_n(batch.raw.logits, n, int8_t{1});
    for (TapPoint& point : points) point.read = point.layer == info.n_layer - 1;
    second = true;
    result.effects.assign(request.edits.size(), {});  // this pass has the last block's other rows, too
    run_tapped(batch, points, /*leave_early=*/true, sink, cancel);
  }
  n_past_ += n;
  depth_ = depth;
  try {
    for (const LayerStates& layer : result.layers) check_finite(layer, n_past_ - rows);
    if (request.next_top > 0)
      result.next = top_tokens(result.logits.data(), 1, info.n_vocab, request.next_top, {}, 1);
  } catch (...) {
    doubtful_ = true;
    clear_memory();
    throw;
  }
  if (!request.keep_logits) std::vector<float>().swap(result.logits);
  std::vector<int32_t> targets;
  if (request.lens_target >= 0) {
    targets.assign(rows, request.lens_target);
  } else if (request.lens_answer && request.next_top > 0) {
    targets.assign(rows, -1);
    targets.back() = result.next.ids.front();
  }
  for (LayerStates& layer : result.layers) {
    cancel.check();
    if (request.lens_top > 0 && stream_.lens.supported) {
      layer.lens = lens().top(layer.states.data(), rows, request.lens_top, targets);
    }
    if (!request.keep_states) std::vector<float>().swap(layer.states);
  }
  result.layers = in_order_of(request.layers, layers, std::move(result.layers));
  return result;
}

}  // namespace tapline
