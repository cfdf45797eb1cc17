#include "experiment/passes.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "base/f32_attention.h"
#include "experiment/graph_points.h"

namespace tapline {

namespace {

/// Tensors of a context for 276 tokens begin where vectors cross cache lines: its passes took 1.18 times as
/// long as those of one for 288.
constexpr uint32_t kBatchUnit = 32;

SplitKind split_kind(const ModelInfo& info) {
  if (info.hybrid) return SplitKind::kEqual;
  return info.recurrent ? SplitKind::kEqualAscending : SplitKind::kInOrder;
}

/// TypeScript has validated; beyond these limits, llama.cpp would abort the process or exhaust memory.
void check_option(const char* what, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return;
  throw_error(ErrorCode::kInvalidArgument, what, " must be ", least, " to ", most, ", got ", value, ".");
}

/// Whether flash attention runs on the processor, with keys and values in F32.
bool takes_f32_attention([[maybe_unused]] const ModelInfo& info) {
#ifdef TAPLINE_F32_ATTENTION
  return std::all_of(info.devices.begin(), info.devices.end(),
                     [](const DeviceBlocks& device) { return device.host; });
#else
  return false;
#endif
}

bool aborted(void* data) {
  return static_cast<CancelToken*>(data)->cancelled();
}

}  // namespace

uint32_t batch_tokens(const ModelInfo& info, uint32_t most) {
  const auto by_logits = static_cast<uint32_t>((40 << 20) / std::max(1, info.n_vocab));
  return std::clamp<uint32_t>(by_logits / kBatchUnit * kBatchUnit, 64, most);
}

Passes::Passes(std::shared_ptr<Model> model, const ContextOptions& options) : model_(std::move(model)) {
  check_option("Tokens of a context", options.n_ctx, 1, 1U << 20U);
  check_option("Tokens of a batch", options.n_batch, 0, 1U << 20U);
  check_option("Sequences of a context", options.n_seq_max, 0, llama_max_parallel_sequences());
  check_option("Threads of a context", options.n_threads, 0, GGML_MAX_N_THREADS);
  const ModelInfo& info = model_->info();
  n_threads_ = options.n_threads > 0 ? options.n_threads
                                     : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  n_seq_max_ = std::max(1U, options.n_seq_max);
  // Models that attend in both directions need a whole text in one pass.
  const bool whole_text = llama_model_is_diffusion(model_->handle());
  const uint32_t wanted = options.n_batch > 0 ? options.n_batch : batch_tokens(info, kUsualBatch);
  n_batch_ = whole_text ? options.n_ctx : std::min(wanted, options.n_ctx);
  llama_context_params params = llama_context_default_params();
  params.n_ctx = options.n_ctx;
  params.n_batch = params.n_ubatch = GGML_PAD(n_batch_, kBatchUnit);
  params.n_seq_max = n_seq_max_;
  row_threads_.emplace(n_threads_);
  params.n_threads = n_threads_;
  params.n_threads_batch = n_threads_;
  params.kv_unified = true;  // sequences share one cache, so a batch keeps its order
  // F32 weights are used for exact readings: K and V in F16 change a real model's block outputs by 6e-4 (L2).
  // Flash attention of devices needs F16.
  if (llama_model_ftype(model_->handle()) == LLAMA_FTYPE_ALL_F32) {
    params.type_k = params.type_v = GGML_TYPE_F32;
    f32_attention_ = takes_f32_attention(info);
    if (!f32_attention_) params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  }
  // Flash attention does not store weights.
  if (options.keep_attention) params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.no_perf = true;
  params.cb_eval = BlockTap::on_node;
  params.cb_eval_user_data = &tap_;
  params.abort_callback = aborted;
  params.abort_callback_data = &abort_;
  const F32AttentionScope scope(f32_attention_);
  owner_.reset(llama_init_from_model(model_->handle(), params));
  ctx_ = owner_.get();
  if (ctx_ == nullptr)
    throw_error(ErrorCode::kOutOfMemory, "A context of ", options.n_ctx, " tokens for '", info.path,
                "' could not be created, possibly for lack of memory.");
  n_ctx_ = llama_n_ctx(ctx_);
  n_batch_ = std::min(n_batch_, llama_n_batch(ctx_));
  sequence_.depth = info.n_layer;
  stream_ = find_residual_stream(ctx_, params, *model_);
  in_graph_ = stream_.supported && GraphEdits::chosen(ctx_, options.edits);
  tap_.describe(&stream_);
}

Passes::~Passes() = default;

void Passes::run(const TokenBatch& batch, const BatchEdits& edits, const CancelToken& cancel) {
  std::vector<TapPoint> points;
  for (const auto& [place, rows] : edits.by_place())
    points.push_back({place.layer, /*read=*/false, &rows, place.point});
  run(batch, std::move(points), /*leave_early=*/false, nullptr, cancel);
}

/// Leaves those of the points that the graph does not read and edit.
void Passes::arm(const TokenBatch& batch, std::vector<TapPoint>& points, bool leave_early, bool reads) {
  if (!in_graph_) return;
  const F32AttentionScope scope(f32_attention_);
  if (!graph_points_) {
    if (points.empty()) return;
    try {
      graph_points_ = std::make_unique<GraphPoints>(ctx_, stream_);
    } catch (const Error&) {
      in_graph_ = false;  // there is not enough memory
      return;
    }
  }
  points = graph_points_->arm(batch.raw, points, leave_early, reads);
  tap_.name_outputs(graph_points_->outputs_before_edits());
}

void Passes::run(const TokenBatch& batch, std::vector<TapPoint> points, bool leave_early,
                 const BlockTap::Sink& sink, const CancelToken& cancel) {
  const std::vector<MicroBatch> micros =
      plan_micro_batches(batch.raw, split_kind(model_->info()), llama_n_ubatch(ctx_), llama_n_rs_seq(ctx_));
  try {
    arm(batch, points, leave_early, sink != nullptr);
    if (leave_early && micros.size() > 1) {
      decode_each(batch, micros, points, sink, cancel);
    } else {
      tap_.arm(std::move(points), leave_early, &micros, sink, cancel);
      decode(batch.raw, cancel);
    }
    if (graph_points_) graph_points_->collect(batch.raw, sink);
  } catch (...) {
    tap_.disarm();
    if (graph_points_) graph_points_->abandon();
    taint();
    clear_memory();  // part of the pass may be in the cache
    throw;
  }
  tap_.disarm();
}

void Passes::run(const RowBatch& batch, const CancelToken& cancel) {
  taint();
  if (graph_points_) graph_points_->disarm();
  try {
    decode(batch.raw, cancel);
  } catch (...) {
    clear_memory();
    throw;
  }
}

void Passes::add(TokenBatch& batch, const llama_token* tokens, size_t count, size_t position,
                 llama_seq_id sequence, bool answer) const {
  for (size_t i = 0; i < count; ++i) {
    batch.add(tokens[i], static_cast<uint32_t>(position + i), sequence,
              answer && (i + 1 == count || stream_.heads_every_row));
  }
}

const float* Passes::logits(size_t batch_row) {
  const float* logits = llama_get_logits_ith(ctx_, static_cast<int32_t>(batch_row));
  if (logits == nullptr)
    throw Error(ErrorCode::kUnsupportedArchitecture, "The model does not compute logits.");
  return logits;
}

/// An early exit ends llama_decode, so each micro-batch is decoded separately. llama.cpp computes the same
/// ones: each has an equal number of the next tokens of its sequences.
void Passes::decode_each(const TokenBatch& batch, const std::vector<MicroBatch>& micros,
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
    decode(part.raw, cancel);
  }
}

void Passes::decode(const llama_batch& batch, const CancelToken& cancel) {
  abort_ = cancel;
  const F32AttentionScope scope(f32_attention_);
  int status = 0;
  try {
    status = llama_decode(ctx_, batch);
  } catch (const BlockTap::EarlyExit&) {
    // complete
  } catch (...) {
    llama_synchronize(ctx_);  // pending copies of other devices must not reach the next pass
    throw;
  }
  llama_synchronize(ctx_);
  cancel.check();
  if (status == 1) throw_error(ErrorCode::kTokenLimit, "The context of ", n_ctx_, " tokens is full.");
  if (status != 0) throw_error(ErrorCode::kCompute, "The forward pass failed (llama_decode: ", status, ").");
  tap_.check_complete();
}

void Passes::clear_memory() {
  // Free cells keep their numbers, which are multiplied by zero when they are masked. That removes finite
  // numbers but not NaN and infinity.
  if (memory() != nullptr) llama_memory_clear(memory(), /*data=*/tainted_);
  tainted_ = false;
  sequence_ = {0, info().n_layer};
}

void Passes::reset() {
  const auto locked = lock();
  clear_memory();
}

bool Passes::keeps_beginnings(size_t n_tokens) const {
  return !info().hybrid && !info().recurrent &&
         (info().n_swa == 0 || n_tokens <= static_cast<size_t>(info().n_swa));
}

Passes::Checkpoint Passes::checkpoint() const {
  Checkpoint checkpoint{sequence_.n_past, {}};
  if (sequence_.n_past == 0 || !(info().hybrid || info().recurrent)) return checkpoint;
  checkpoint.recurrent.resize(llama_state_seq_get_size_ext(ctx_, 0, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY));
  const size_t written = llama_state_seq_get_data_ext(
      ctx_, checkpoint.recurrent.data(), checkpoint.recurrent.size(), 0, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
  if (written != checkpoint.recurrent.size())
    throw Error(ErrorCode::kInternal, "The recurrent state of a sequence could not be copied.");
  return checkpoint;
}

void Passes::restore(const Checkpoint& checkpoint) {
  if (memory() == nullptr) return;
  if (checkpoint.n_past == 0) {
    llama_memory_clear(memory(), /*data=*/false);
    return;
  }
  const bool restored =
      checkpoint.recurrent.empty() ||
      llama_state_seq_set_data_ext(ctx_, checkpoint.recurrent.data(), checkpoint.recurrent.size(), 0,
                                   LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY) == checkpoint.recurrent.size();
  if (restored && llama_memory_seq_rm(memory(), 0, static_cast<llama_pos>(checkpoint.n_past), -1)) return;
  clear_memory();
  throw Error(ErrorCode::kInternal, "The memory of a sequence could not be restored.");
}

LogitLens& Passes::lens() {
  if (!stream_.lens.supported) throw Error(ErrorCode::kUnsupportedArchitecture, stream_.lens.reason);
  if (!lens_) {
    lens_ = std::make_unique<LogitLens>(model_->handle(), stream_.lens, info().n_embd, info().n_vocab,
                                        n_threads_);
  }
  return *lens_;
}

}  // namespace tapline
