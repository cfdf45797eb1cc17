#include "capture/logit_lens.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/error.h"
#include "capture/exponentials.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml-cpu.h"
#include "llama-ext.h"

namespace tapline {

namespace {

/// The most logits in memory: 64 MiB of floats, which is 105 rows of a 152k vocabulary.
constexpr size_t kLogitsAtOnce = 16U << 20U;

void append_rows(TopTokens& all, const TopTokens& part) {
  all.k = part.k;
  append(all.ids, part.ids);
  append(all.probabilities, part.probabilities);
  append(all.target_probabilities, part.target_probabilities);
  append(all.target_ranks, part.target_ranks);
}

/// The rounding of two ways to compute the same sum.
constexpr double kRounding = 1e-6;

/// Entropy of a row of logits' softmax, in nats.
double entropy(const float* logits, int n_vocab) {
  const WeighedSums sums = weighed(logits, n_vocab, highest_of(logits, n_vocab));
  return std::max(0.0, std::log(sums.weights) - sums.values / sums.weights);
}

/// KL divergence of two rows of logits in nats: sum of p (log p - log q). Tokens with p = 0 contribute
/// nothing.
double divergence(const float* p, const float* q, int n_vocab) {
  const float highest_q = highest_of(q, n_vocab);
  const WeighedSums sums = weighed(p, q, n_vocab, highest_of(p, n_vocab), highest_q);
  const double apart =
      sums.values / sums.weights - std::log(sums.weights) + std::log(exponentials(q, n_vocab, highest_q));
  return apart < kRounding ? 0.0 : apart;
}

TopTokens rows_of(const TopTokens& all, size_t first, size_t count) {
  const auto part = [&](const auto& values, size_t width) {
    if (values.empty()) return values;
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(first * width);
    return std::decay_t<decltype(values)>(from, from + static_cast<std::ptrdiff_t>(count * width));
  };
  const auto width = static_cast<size_t>(all.k);
  return {all.k, part(all.ids, width), part(all.probabilities, width), part(all.target_probabilities, 1),
          part(all.target_ranks, 1)};
}

ggml_tensor* apply(ggml_context* ctx, ggml_tensor* x, const LensStep& step) {
  switch (step.kind) {
    case LensStep::Kind::kRmsNorm:
      return ggml_rms_norm(ctx, x, step.a);
    case LensStep::Kind::kLayerNorm:
      return ggml_norm(ctx, x, step.a);
    case LensStep::Kind::kMultiply:
      return ggml_mul(ctx, x, step.weight);
    case LensStep::Kind::kAdd:
      return ggml_add(ctx, x, step.weight);
    case LensStep::Kind::kMatrix: {
      ggml_tensor* product = ggml_mul_mat(ctx, step.weight, x);
      std::copy(step.params.begin(), step.params.end(), product->op_params);
      return product;
    }
    case LensStep::Kind::kScale:
      return ggml_scale_bias(ctx, x, step.a, step.b);
    case LensStep::Kind::kTanh:
      return ggml_tanh(ctx, x);
  }
  return x;
}

}  // namespace

/// The backends that hold the model's weights, then the CPU.
struct LogitLens::Devices {
  std::vector<ggml_backend_ptr> owned;
  std::vector<ggml_backend_t> list;
  ggml_backend_sched_ptr sched;
};

/// The lens as a compute graph for one number of rows.
struct LogitLens::Graph {
  size_t rows = 0;
  ggml_context_ptr ctx;
  ggml_cgraph* graph = nullptr;
  ggml_tensor* input = nullptr;
  ggml_tensor* output = nullptr;
};

LogitLens::LogitLens(const llama_model* model, const LensRecipe& recipe, int n_embd, int n_vocab,
                     int n_threads)
    : recipe_(recipe), n_embd_(n_embd), n_vocab_(n_vocab), threads_(n_threads), devices_(new Devices()) {
  const auto add = [this](ggml_backend_t backend) {
    if (backend == nullptr)
      throw Error(ErrorCode::kCompute, "A device for the logit lens could not be opened.");
    devices_->owned.emplace_back(backend);
    devices_->list.push_back(backend);
  };
  for (int i = 0; i < llama_model_n_devices(model); ++i)
    add(ggml_backend_dev_init(llama_model_get_device(model, i), nullptr));
  add(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr));
  ggml_backend_cpu_set_n_threads(devices_->list.back(), n_threads);
  devices_->sched.reset(ggml_backend_sched_new(devices_->list.data(), nullptr,
                                               static_cast<int>(devices_->list.size()), 64, false, true));
}

LogitLens::~LogitLens() = default;

void LogitLens::prepare(size_t rows) {
  if (graph_ && graph_->rows == rows) return;
  auto next = std::make_unique<Graph>();
  next->rows = rows;
  const size_t overhead =
      ggml_tensor_overhead() * (recipe_.steps.size() + 4) + ggml_graph_overhead_custom(64, false);
  next->ctx.reset(ggml_init({overhead, nullptr, /*no_alloc=*/true}));
  next->input = ggml_new_tensor_2d(next->ctx.get(), GGML_TYPE_F32, n_embd_, static_cast<int64_t>(rows));
  ggml_set_input(next->input);
  ggml_tensor* x = next->input;
  for (const LensStep& step : recipe_.steps) x = apply(next->ctx.get(), x, step);
  ggml_set_output(x);
  next->output = x;
  next->graph = ggml_new_graph_custom(next->ctx.get(), 64, false);
  ggml_build_forward_expand(next->graph, x);
  ggml_backend_sched_reset(devices_->sched.get());
  if (!ggml_backend_sched_alloc_graph(devices_->sched.get(), next->graph)) {
    graph_.reset();
    throw Error(ErrorCode::kOutOfMemory, "There is not enough memory for the logit lens.");
  }
  graph_ = std::move(next);
}

const float* LogitLens::computed(const float* states, size_t rows, std::vector<float>& buffer) {
  prepare(rows);
  ggml_backend_tensor_set(graph_->input, states, 0, rows * static_cast<size_t>(n_embd_) * sizeof(float));
  if (ggml_backend_sched_graph_compute(devices_->sched.get(), graph_->graph) != GGML_STATUS_SUCCESS) {
    throw Error(ErrorCode::kCompute, "The logit lens could not be computed.");
  }
  const ggml_tensor* output = graph_->output;
  if (ggml_backend_buffer_is_host(output->buffer)) return static_cast<const float*>(output->data);
  buffer.resize(rows * static_cast<size_t>(n_vocab_));
  ggml_backend_tensor_get(output, buffer.data(), 0, buffer.size() * sizeof(float));
  return buffer.data();
}

void LogitLens::logits(const float* states, size_t rows, std::vector<float>& out) {
  std::vector<float> buffer;
  const float* found = computed(states, rows, buffer);
  out.assign(found, found + rows * static_cast<size_t>(n_vocab_));
}

TopTokens LogitLens::top(const float* states, size_t rows, int k, const int32_t* targets) {
  TopTokens all;
  all.k = std::min(k, n_vocab_);
  const size_t at_once = std::max<size_t>(1, kLogitsAtOnce / static_cast<size_t>(n_vocab_));
  std::vector<float> buffer;
  for (size_t first = 0; first < rows; first += at_once) {
    const size_t count = std::min(at_once, rows - first);
    const float* found = computed(states + first * static_cast<size_t>(n_embd_), count, buffer);
    const TopTokens part =
        top_tokens(found, count, n_vocab_, k, targets == nullptr ? nullptr : targets + first, threads_);
    append_rows(all, part);
  }
  return all;
}

std::shared_ptr<LoadedTranslator> LogitLens::load(const Translator& translator) {
  return std::make_shared<LoadedTranslator>(devices_->list.front(), translator, n_embd_);
}

std::vector<LensReading> LogitLens::read(const LensRequest& request, const CancelToken& cancel) {
  const auto width = static_cast<size_t>(n_embd_);
  const auto vocabulary = static_cast<size_t>(n_vocab_);
  const size_t rows = request.rows;
  // For each group of rows: the model's output, if given, then place by place.
  std::vector<const float*> sources;
  if (request.output != nullptr) sources.push_back(request.output);
  const size_t first_place = sources.size();
  std::vector<std::vector<float>> translated;
  translated.reserve(request.places.size());
  for (const LensRows& place : request.places) {
    cancel.check();
    sources.push_back(place.states);
    if (place.translator == nullptr) continue;
    std::vector<float>& values = translated.emplace_back(place.states, place.states + rows * width);
    load(*place.translator)->apply(values);
    sources.back() = values.data();
  }
  const size_t at_once = std::max<size_t>(1, kLogitsAtOnce / vocabulary / sources.size());

  std::vector<LensReading> readings(request.places.size());
  std::vector<float> stacked;
  std::vector<float> buffer;
  std::vector<int32_t> targets;
  for (size_t first = 0; first < rows; first += at_once) {
    cancel.check();
    const size_t count = std::min(at_once, rows - first);
    stacked.clear();
    for (const float* source : sources) {
      const float* from = source + first * width;
      stacked.insert(stacked.end(), from, from + count * width);
    }
    const float* found = computed(stacked.data(), sources.size() * count, buffer);
    targets.clear();
    for (size_t i = 0; !request.targets.empty() && i < readings.size(); ++i) {
      const auto from = request.targets.begin() + static_cast<std::ptrdiff_t>(first);
      targets.insert(targets.end(), from, from + static_cast<std::ptrdiff_t>(count));
    }
    // The rows of all places together, so that threads do not wait for each other after each place.
    const TopTokens top =
        top_tokens(found + first_place * count * vocabulary, readings.size() * count, n_vocab_, request.top,
                   targets.empty() ? nullptr : targets.data(), threads_);
    for (size_t i = 0; i < readings.size(); ++i) append_rows(readings[i].top, rows_of(top, i * count, count));
    compare(request, found, count, readings);
  }
  return readings;
}

void LogitLens::compare(const LensRequest& request, const float* logits, size_t count,
                        std::vector<LensReading>& readings) {
  const bool compared = request.output != nullptr;
  if (!request.entropy && !compared) return;
  const auto vocabulary = static_cast<size_t>(n_vocab_);
  const size_t before =
      request.entropy ? readings.front().entropies.size() : readings.front().divergences.size();
  for (LensReading& reading : readings) {
    if (request.entropy) reading.entropies.resize(before + count);
    if (compared) reading.divergences.resize(before + count);
  }
  const size_t all = readings.size() * count;
  const auto one = [&](size_t index) {
    const size_t row = index % count;
    LensReading& reading = readings[index / count];
    const float* own = logits + (index + (compared ? count : 0)) * vocabulary;
    if (request.entropy) reading.entropies[before + row] = static_cast<float>(entropy(own, n_vocab_));
    if (compared) {
      const float* output = logits + row * vocabulary;
      reading.divergences[before + row] = static_cast<float>(divergence(output, own, n_vocab_));
    }
  };
  threads_.each_row(all, n_vocab_, one);
}

}  // namespace tapline
