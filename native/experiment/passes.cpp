#include "experiment/passes.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

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

Passes::Passes(std::shared_ptr<Model> model, const ContextOptions& options) : model_(std::move(model)) {
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
  row_threads_.emplace(n_threads_);
  params.n_threads = n_threads_;
  params.n_threads_batch = n_threads_;
  params.kv_unified = true;  // sequences share one cache, so a batch keeps its order
  // Weights in F32 are there for exact readings: K and V in F16 move a real model's block outputs by 6e-4
  // (L2), and llama.cpp's flash attention casts both to F16 whatever the cache holds.
  if (llama_model_ftype(model_->handle()) == LLAMA_FTYPE_ALL_F32) {
    params.type_k = params.type_v = GGML_TYPE_F32;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  }
  // Flash attention keeps no weights.
  if (options.keep_attention) params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
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

Passes::~Passes() = default;

std::vector<int> Passes::check_layers(const std::vector<int>& layers) const {
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

void Passes::check_point(Point point) const {
  const BlockPoints::Found& found = stream_.points.at(point);
  if (!found.supported) throw Error(ErrorCode::kUnsupportedArchitecture, found.reason);
}

void Passes::check_changeable(Point point) {
  if (Place{0, point}.is_vector()) return;
  throw Error(ErrorCode::kInvalidArgument,
              std::string("The point ") + name_of(point) + " is no vector a token and cannot be changed.");
}

void Passes::check_hidden(Point point) const {
  check_point(point);
  if (Place{0, point}.is_vector() && point != Point::kHeadOut) return;
  throw Error(ErrorCode::kInvalidArgument,
              std::string(name_of(point)) + " is no vector of the hidden size, which is wanted here.");
}

const Site& Passes::check_place(Place place) const {
  check_point(place.point);
  const BlockPoints::Found& found = stream_.points.at(place.point);
  const Site& site = stream_.points.site(place);
  if (site.node >= 0) return site;
  throw Error(ErrorCode::kUnsupportedArchitecture, "Block " + std::to_string(place.layer) + " has no " +
                                                       name_of(place.point) + ": it " +
                                                       found.without[static_cast<size_t>(place.layer)] + ".");
}

void Passes::check_head(Place place, int head, const Site& site) {
  if (head < 0 || (place.point == Point::kHeadOut && head < site.heads)) return;
  throw Error(ErrorCode::kInvalidArgument,
              "Head " + std::to_string(head) + " does not exist at " + place.text(false) + "; " +
                  (site.heads > 0 ? "there are " + std::to_string(site.heads) + "." : "there are no heads."));
}

std::vector<Place> Passes::check_places(const std::vector<int>& layers,
                                        const std::vector<Point>& points) const {
  check_layers(layers);
  std::vector<Place> places;
  for (const Point point : points) {
    if (!layers.empty()) check_point(point);
    if (std::count(points.begin(), points.end(), point) > 1)
      throw Error(ErrorCode::kInvalidArgument,
                  std::string("The point ") + name_of(point) + " is listed twice.");
  }
  for (const int layer : layers) {
    for (const Point point : points) {
      check_place({layer, point});
      if (!Place{layer, point}.is_vector()) {
        throw Error(ErrorCode::kInvalidArgument, std::string("The point ") + name_of(point) +
                                                     " is no vector a token and has a request of its own.");
      }
      places.push_back({layer, point});
    }
  }
  return places;
}

void Passes::check_tokens(const std::vector<llama_token>& tokens) const {
  if (tokens.empty()) throw Error(ErrorCode::kInvalidArgument, "There are no tokens to compute.");
  model_->check_tokens(tokens);
}

void Passes::check_edits(const EditPlan& plan) const {
  for (const Edit& edit : plan) {
    check_layers({edit.layer});
    const Site& site = check_place(edit.place());
    check_changeable(edit.point);
    for (const int head : edit.heads) {
      check_head(edit.place(), head, site);
      if (std::count(edit.heads.begin(), edit.heads.end(), head) > 1)
        throw Error(ErrorCode::kInvalidArgument, "An edit lists head " + std::to_string(head) + " twice.");
    }
    check_vector(edit, edit.width_of(static_cast<size_t>(site.width), site.heads));
  }
}

void Passes::run_edited(const TokenBatch& batch, const BatchEdits& edits, const CancelToken& cancel) {
  std::vector<TapPoint> points;
  for (const auto& [place, rows] : edits.by_place())
    points.push_back({place.layer, /*read=*/false, &rows, place.point});
  run_tapped(batch, std::move(points), /*leave_early=*/false, nullptr, cancel);
}

void Passes::run_tapped(const TokenBatch& batch, std::vector<TapPoint> points, bool leave_early,
                        const BlockTap::Sink& sink, const CancelToken& cancel) {
  const std::vector<MicroBatch> micros =
      plan_micro_batches(batch.raw, split_kind(model_->info()), llama_n_ubatch(ctx_), llama_n_rs_seq(ctx_));
  try {
    if (leave_early && micros.size() > 1) {
      decode_each(batch, micros, points, sink, cancel);
    } else {
      tap_.arm(std::move(points), leave_early, &micros, sink, cancel);
      decode(batch.raw, cancel);
    }
  } catch (...) {
    tap_.disarm();
    doubtful_ = true;
    clear_memory();  // part of the pass may be in the cache, whatever its numbers
    throw;
  }
  tap_.disarm();
}

/// Leaving a micro-batch ends llama_decode, so each gets one of its own. llama.cpp computes the same ones:
/// each holds equally many of the next tokens of its sequences.
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
  int status = 0;
  try {
    status = llama_decode(ctx_, batch);
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
  tap_.check_met();
}

void Passes::clear_memory() {
  // A cell that is free keeps its numbers, and those of a cell that nobody may attend to are multiplied by
  // zero: what is finite is gone by that, NaN and infinity are not.
  if (llama_memory_t memory = llama_get_memory(ctx_)) llama_memory_clear(memory, /*data=*/doubtful_);
  doubtful_ = false;
  n_past_ = 0;
  depth_ = model_->info().n_layer;
}

LogitDirection Passes::logit_direction(const std::vector<float>& state, llama_token token) const {
  if (!stream_.supported) throw Error(ErrorCode::kUnsupportedArchitecture, stream_.reason);
  model_->check_tokens({token});
  if (state.size() != static_cast<size_t>(model_->info().n_embd)) {
    throw Error(ErrorCode::kInvalidArgument, "A state has " + std::to_string(model_->info().n_embd) +
                                                 " values, got " + std::to_string(state.size()) + ".");
  }
  return tapline::logit_direction(stream_.lens, state, token);
}

std::vector<float> Passes::lens_logits(const std::vector<float>& rows) {
  const auto width = static_cast<size_t>(model_->info().n_embd);
  if (!stream_.lens.supported) throw Error(ErrorCode::kUnsupportedArchitecture, stream_.lens.reason);
  if (rows.empty() || rows.size() % width != 0) {
    throw Error(ErrorCode::kInvalidArgument,
                std::to_string(rows.size()) + " values are no rows of " + std::to_string(width) + ".");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<float> logits;
  lens().logits(rows.data(), rows.size() / width, logits);
  return logits;
}

std::vector<LensReading> Passes::read_lens(LensRequest request, const CancelToken& cancel) {
  const auto width = static_cast<size_t>(model_->info().n_embd);
  if (!stream_.lens.supported) throw Error(ErrorCode::kUnsupportedArchitecture, stream_.lens.reason);
  if (request.places.empty() || request.top < 1)
    throw Error(ErrorCode::kInvalidArgument, "A lens reads at least one place, and its best token.");
  const size_t count = request.places.front().states.size();
  const auto odd = [&](const std::vector<float>& rows) { return rows.size() != count; };
  if (count == 0 || count % width != 0 || (!request.output.empty() && odd(request.output)) ||
      (!request.targets.empty() && request.targets.size() != count / width) ||
      std::any_of(request.places.begin(), request.places.end(),
                  [&](const LensRows& place) { return odd(place.states); })) {
    throw Error(ErrorCode::kInvalidArgument,
                "A lens reads as many rows of " + std::to_string(width) + " values of every place.");
  }
  for (const int32_t target : request.targets) {
    if (target >= model_->info().n_vocab)
      throw Error(ErrorCode::kInvalidArgument, "The lens's target " + std::to_string(target) +
                                                   " is outside the vocabulary of " +
                                                   std::to_string(model_->info().n_vocab) + " tokens.");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  return lens().read(std::move(request), cancel);
}

void Passes::reset() {
  const std::lock_guard<std::mutex> lock(mutex_);
  clear_memory();
}

LogitLens& Passes::lens() {
  if (!lens_) {
    const ModelInfo& info = model_->info();
    lens_ =
        std::make_unique<LogitLens>(model_->handle(), stream_.lens, info.n_embd, info.n_vocab, n_threads_);
  }
  return *lens_;
}

}  // namespace tapline
