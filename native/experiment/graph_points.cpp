#include "experiment/graph_points.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace tapline {

namespace {

/// The copy that a point reads. Without edits, both are the same.
CopiedRows copy_of(const TapPoint& point) {
  return {point.layer, point.read_edited && point.edits != nullptr};
}

bool is_output(const TapPoint& point) {
  return point.point == Point::kBlockOut;
}

}  // namespace

bool GraphPoints::takes(const TapPoint& point) const {
  if (!is_output(point) || point.rows != nullptr || !graph_.reads(point.place())) return false;
  return point.edits == nullptr ||
         std::all_of(point.edits->begin(), point.edits->end(),
                     [this](const RowEdit& row) { return graph_.takes(*row.edit); });
}

std::vector<TapPoint> GraphPoints::arm(const llama_batch& batch, const std::vector<TapPoint>& points,
                                       bool leave_early, bool reads) {
  taken_.clear();
  armed_ = false;
  int deepest = -1;
  for (const TapPoint& point : points) deepest = std::max(deepest, point.layer);
  std::vector<TapPoint> left;
  for (const TapPoint& point : points) {
    const bool ends = leave_early && point.layer == deepest;
    // The tap finds points inside a block by counting nodes, to which the graph adds.
    if (ends ? !is_output(point) : !takes(point)) {
      graph_.disarm();
      return points;
    }
    (ends ? left : taken_).push_back(point);
  }
  // An armed graph remains: without edits, it computes the same.
  if (taken_.empty() && !graph_.armed()) return points;
  if (!arm_graph(batch, reads)) return points;
  return left;
}

bool GraphPoints::arm_graph(const llama_batch& batch, bool reads) {
  std::stable_sort(taken_.begin(), taken_.end(),
                   [](const TapPoint& a, const TapPoint& b) { return a.layer < b.layer; });
  edits_.clear();
  std::set<CopiedRows> copies;
  std::set<Place> lengths;
  for (TapPoint& point : taken_) {
    if (point.edits != nullptr) edits_.add(point.place(), *point.edits);
    point.read = point.read && reads;
    point.only_lengths = point.only_lengths && !copy_of(point).edited;
    if (point.read && point.only_lengths) lengths.insert(point.place());
    if (point.read && !point.only_lengths) copies.insert(copy_of(point));
  }
  if (out_of_memory_) return false;
  try {
    armed_ = graph_.arm(batch, edits_, lengths, {}, copies);
  } catch (const Error&) {
    out_of_memory_ = true;  // the tap needs no memory of the device
  }
  return armed_;
}

void GraphPoints::collect(const llama_batch& batch, const BlockTap::Sink& sink) {
  if (!armed_) return;
  armed_ = false;
  graph_.collect(batch, edits_);
  for (const TapPoint& point : taken_) {
    if (!point.read) continue;
    std::vector<int> rows;
    for (int i = 0; i < batch.n_tokens; ++i) {
      if (graph_.computed(point.layer, i)) rows.push_back(i);
    }
    if (rows.empty()) continue;
    TappedRows tapped{point.layer, nullptr,     &rows,
                      rows.size(), point.point, static_cast<size_t>(graph_.n_embd())};
    if (point.only_lengths) {
      std::vector<double> lengths;
      for (const int row : rows) lengths.push_back(graph_.length(point.place(), row));
      tapped.lengths = lengths.data();
      sink(tapped);
      continue;
    }
    tapped.values = graph_.rows(copy_of(point));
    std::vector<float> together;
    if (rows.size() < static_cast<size_t>(batch.n_tokens)) {
      for (const int row : rows) {
        const float* const from = tapped.values + static_cast<size_t>(row) * tapped.width;
        together.insert(together.end(), from, from + tapped.width);
      }
      tapped.values = together.data();
    }
    sink(tapped);
  }
}

void GraphPoints::abandon() {
  if (armed_) graph_.abandon();
  armed_ = false;
}

}  // namespace tapline
