#include "capture/block_tap.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "ggml-backend.h"

namespace tapline {

void BlockTap::arm(std::vector<TapPoint> points, bool leave_early, const std::vector<MicroBatch>* rows,
                   Sink sink, const CancelToken& cancel) {
  points_ = std::move(points);
  leave_early_ = leave_early && !points_.empty();
  batches_ = rows;
  sink_ = std::move(sink);
  cancel_ = cancel;
  armed_ = true;
  batch_ = -1;
  next_ = 0;
  seen_tokens_.clear();
  failure_.clear();
}

void BlockTap::disarm() {
  armed_ = false;
  points_.clear();
  sink_ = nullptr;
  batches_ = nullptr;
  cancel_ = CancelToken();
  failure_.clear();
}

void BlockTap::check() const {
  if (!failure_.empty()) throw Error(ErrorCode::kInternal, failure_);
}

bool BlockTap::on_node(ggml_tensor* t, bool ask, void* user_data) {
  auto* self = static_cast<BlockTap*>(user_data);
  if (!self->armed_) return !ask;
  self->cancel_.check();
  if (ask) return self->wants(t);
  self->take(t);
  return true;
}

bool BlockTap::wants(const ggml_tensor* t) {
  if (std::strcmp(t->name, stream_->first_node.c_str()) == 0) begin_micro_batch(t);
  if (next_ >= points_.size()) return false;
  if (shared_ && seen_positions_.empty()) look_for_positions(t);
  const std::string& name = stream_->blocks[static_cast<size_t>(points_[next_].layer)];
  return std::strcmp(t->name, name.c_str()) == 0;
}

void BlockTap::begin_micro_batch(const ggml_tensor* first_node) {
  ++batch_;
  next_ = failure_.empty() ? 0 : points_.size();
  seen_positions_.clear();
  // Read now: the scheduler may reuse the memory of an input once it has been consumed.
  seen_tokens_.clear();
  for (const ggml_tensor* source : first_node->src) {
    if (source == nullptr || source->buffer == nullptr || std::strstr(source->name, "inp_tokens") == nullptr)
      continue;
    seen_tokens_.resize(ggml_nbytes(source) / sizeof(llama_token));
    ggml_backend_tensor_get(source, seen_tokens_.data(), 0, ggml_nbytes(source));
  }
}

/// Rows of several sequences may hold the same tokens; their positions tell them apart where they differ.
void BlockTap::look_for_positions(const ggml_tensor* node) {
  for (const ggml_tensor* source : node->src) {
    if (source == nullptr || source->buffer == nullptr || source->type != GGML_TYPE_I32 ||
        std::strstr(source->name, "inp_pos") == nullptr)
      continue;
    seen_positions_.resize(ggml_nbytes(source) / sizeof(llama_pos));
    ggml_backend_tensor_get(source, seen_positions_.data(), 0, ggml_nbytes(source));
    return;
  }
}

void BlockTap::fail(const std::string& sentence) {
  if (!shared_) throw Error(ErrorCode::kInternal, sentence);
  if (failure_.empty()) failure_ = sentence;
  next_ = points_.size();
}

std::pair<size_t, size_t> BlockTap::edit(const std::vector<RowEdit>& edits, const std::vector<int>& indices,
                                         float* values) {
  const int most = *std::max_element(indices.begin(), indices.end());
  row_at_.assign(static_cast<size_t>(most) + 1, -1);
  for (size_t row = 0; row < indices.size(); ++row)
    row_at_[static_cast<size_t>(indices[row])] = static_cast<int>(row);
  const auto width = static_cast<size_t>(n_embd_);
  size_t first = indices.size();
  size_t end = 0;
  for (const RowEdit& edit : edits) {
    if (edit.batch_index > most) continue;
    const int found = row_at_[static_cast<size_t>(edit.batch_index)];
    if (found < 0) continue;  // in another micro-batch, or not computed because nothing reads it
    const auto row = static_cast<size_t>(found);
    edit.effect->add(edit.edit->apply(values + row * width, width));
    first = std::min(first, row);
    end = std::max(end, row + 1);
  }
  return {first, end > first ? end - first : 0};
}

void BlockTap::take(ggml_tensor* t) {
  const TapPoint point = points_[next_];
  if (batch_ < 0 || static_cast<size_t>(batch_) >= batches_->size()) {
    return fail("The compute graph ran another number of micro-batches than planned.");
  }
  const MicroBatch& batch = (*batches_)[static_cast<size_t>(batch_)];
  // The last block usually computes only the rows whose logits were asked for.
  const auto count = static_cast<size_t>(ggml_nelements(t) / n_embd_);
  const std::vector<int>* indices = nullptr;
  if (t->ne[0] == n_embd_ && t->type == GGML_TYPE_F32 && ggml_is_contiguous(t)) {
    if (count == batch.rows.size())
      indices = &batch.rows;
    else if (count == batch.outputs.size())
      indices = &batch.outputs;
  }
  if (indices == nullptr) {
    return fail("Block output " + std::to_string(point.layer) + " has " + std::to_string(count) +
                " rows where " + std::to_string(batch.rows.size()) + " were expected.");
  }
  const bool elsewhere = seen_positions_.size() >= batch.positions.size() &&
                         !std::equal(batch.positions.begin(), batch.positions.end(), seen_positions_.begin());
  if ((!seen_tokens_.empty() && seen_tokens_ != batch.tokens) || elsewhere) {
    return fail("The rows of a micro-batch are not in the expected order.");
  }

  if (count > 0) {
    // Values that the host cannot reach are fetched, and what was edited of them goes back in one piece.
    const bool host = ggml_backend_buffer_is_host(t->view_src != nullptr ? t->view_src->buffer : t->buffer);
    auto* values = static_cast<float*>(t->data);
    const auto width = static_cast<size_t>(n_embd_);
    if (!host) {
      staging_.resize(count * width);
      values = staging_.data();
      ggml_backend_tensor_get(t, values, 0, count * width * sizeof(float));
    }
    if (point.read && sink_) sink_({point.layer, values, indices, count});
    if (point.edits != nullptr) {
      const auto [first, rows] = edit(*point.edits, *indices, values);
      if (!host && rows > 0) {
        ggml_backend_tensor_set(t, values + first * width, first * width * sizeof(float),
                                rows * width * sizeof(float));
      }
    }
  }
  ++next_;
  if (next_ == points_.size() && leave_early_) throw Left();
}

}  // namespace tapline
