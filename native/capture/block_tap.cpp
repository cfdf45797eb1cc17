#include "capture/block_tap.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "ggml-backend.h"

namespace tapline {

void BlockTap::arm(std::vector<TapPoint> points, bool leave_early, const std::vector<MicroBatch>* rows,
                   Sink sink, const CancelToken& cancel) {
  points_.clear();
  for (const TapPoint& point : points) {
    points_.push_back(armed_point(point, /*proof_only=*/false));
    if (point.point == Point::kBlockOut) continue;
    // The points of a block are proven at its end.
    const auto ends = [&](const TapPoint& other) { return other.place() == Place{point.layer}; };
    const bool ends_armed =
        std::any_of(points.begin(), points.end(), ends) ||
        std::any_of(points_.begin(), points_.end(), [&](const ArmedPoint& m) { return ends(m.point); });
    if (!ends_armed)
      points_.push_back(armed_point({point.layer, /*read=*/false, nullptr}, /*proof_only=*/true));
  }
  for (const TapPoint& point : points) arm_gauged(point);
  std::stable_sort(points_.begin(), points_.end(),
                   [](const ArmedPoint& a, const ArmedPoint& b) { return a.node < b.node; });
  leave_early_ = leave_early && !points_.empty();
  batches_ = rows;
  sink_ = std::move(sink);
  cancel_ = cancel;
  armed_ = true;
  batch_ = -1;
  next_ = 0;
  anchored_ = 0;
  seen_tokens_.clear();
  failure_.clear();
}

void BlockTap::arm_gauged(const TapPoint& edited) {
  if (edited.edits == nullptr) return;
  for (const RowEdit& row : *edited.edits) {
    if (!row.edit->gauge_at) continue;
    const Place place{edited.layer, *row.edit->gauge_at};
    auto armed = std::find_if(points_.begin(), points_.end(),
                              [&](const ArmedPoint& other) { return other.point.place() == place; });
    if (armed == points_.end())
      armed = points_.insert(armed, armed_point({place.layer, /*read=*/false, nullptr, place.point},
                                                /*proof_only=*/false));
    armed->keep = true;
  }
}

BlockTap::ArmedPoint BlockTap::armed_point(const TapPoint& point, bool proof_only) const {
  const Site& site = stream_->points.site(point.place());
  ArmedPoint armed;
  armed.point = point;
  armed.anchor = armed.unchanged_anchor = site.anchor.c_str();
  armed.offset = armed.unchanged_offset = site.offset;
  armed.node = site.node;
  armed.proof_only = proof_only;
  armed.width = site.width;
  armed.heads = site.heads;
  const auto layer = static_cast<size_t>(point.layer);
  if (point.point == Point::kBlockOut && layer < outputs_.size() && !outputs_[layer].empty()) {
    armed.anchor = outputs_[layer].c_str();
    armed.offset = 0;
  }
  return armed;
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
  check_complete();
}

void BlockTap::check_complete() const {
  if (incomplete()) throw Error(ErrorCode::kInternal, missing());
}

std::string BlockTap::missing() const {
  return points_[next_].point.place().text() + " was not found in the compute graph of this pass.";
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
  ++asked_;
  if (next_ >= points_.size()) return false;
  if (shared_ && seen_positions_.empty()) look_for_positions(t);
  find_anchors(t);
  if (points_[next_].due != asked_) return false;
  ArmedPoint& here = points_[next_];
  here.tensor = t;
  if (here.point.point == Point::kBlockOut) prove(here, t);
  // A pass ends after the last block, even if only its beginning was read.
  if (next_ >= points_.size() || !here.proof_only || (leave_early_ && next_ + 1 == points_.size()))
    return next_ < points_.size();
  ++next_;
  return false;
}

void BlockTap::find_anchors(const ggml_tensor* t) {
  for (; anchored_ < points_.size(); ++anchored_) {
    ArmedPoint& point = points_[anchored_];
    if (std::strcmp(t->name, point.anchor) == 0) {
      point.due = asked_ + point.offset;
    } else if (std::strcmp(t->name, point.unchanged_anchor) == 0) {
      point.due = asked_ + point.unchanged_offset;
    } else {
      return;
    }
  }
}

/// Checks that all points that were reached in a block are operands of its output.
void BlockTap::prove(const ArmedPoint& output, const ggml_tensor* t) {
  for (const ArmedPoint& inner : points_) {
    if (inner.point.layer != output.point.layer || inner.point.point == Point::kBlockOut) continue;
    const ggml_tensor* there = follow(t, stream_->points.site(inner.point.place()).route);
    const bool copied = there != nullptr && inner.tensor != nullptr && there->op == GGML_OP_NONE &&
                        GraphView::original_name(there) == inner.tensor->name;
    if (there == nullptr || (there != inner.tensor && !copied)) {
      return fail("The compute graph of this pass has an unexpected tensor at " +
                  inner.point.place().text(/*first_word=*/false) + ".");
    }
  }
}

void BlockTap::begin_micro_batch(const ggml_tensor* first_node) {
  ++batch_;
  if (batch_ > 0 && incomplete()) fail(missing());
  next_ = failure_.empty() ? 0 : points_.size();
  anchored_ = 0;
  kept_.clear();
  asked_ = 0;
  for (ArmedPoint& point : points_) {
    point.tensor = nullptr;
    point.due = -1;
  }
  seen_positions_.clear();
  // Read now: the scheduler may reuse the memory of a consumed input.
  seen_tokens_.clear();
  for (const ggml_tensor* source : first_node->src) {
    if (source == nullptr || source->buffer == nullptr || std::strstr(source->name, "inp_tokens") == nullptr)
      continue;
    seen_tokens_.resize(ggml_nbytes(source) / sizeof(llama_token));
    ggml_backend_tensor_get(source, seen_tokens_.data(), 0, ggml_nbytes(source));
  }
}

/// Rows of several sequences may have the same tokens; positions distinguish them.
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

void BlockTap::finish_point() {
  ++next_;
  if (next_ == points_.size() && leave_early_) throw EarlyExit();
}

}  // namespace tapline
