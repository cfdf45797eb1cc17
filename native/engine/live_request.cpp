#include "engine/live_request.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

namespace tapline {

namespace {

template <class Weight>
double product(const float* row, const std::vector<Weight>& weight) {
  double sum = 0;
  for (size_t i = 0; i < weight.size(); ++i) sum += double(row[i]) * weight[i];
  return sum;
}

std::atomic<uint64_t> next_id{1};

}  // namespace

double LiveProbe::score(const float* row) const {
  return score_of(product(row, weight));
}

double LiveProbe::score_of(double product) const {
  return 1 / (1 + std::exp(-(product + bias)));
}

double LiveProjection::of(const float* row) const {
  return product(row, direction->values) / direction->length;
}

bool LivePlan::needs_part(Positions::Part part) const {
  return watch.positions.part == part || std::any_of(edits.begin(), edits.end(), [part](const Edit& edit) {
           return edit.positions.part == part;
         });
}

LiveTrack::LiveTrack(const LivePlan& plan, bool plain)
    : plain(plain), effects(plan.edits.size()), reached(plan.conditions.size(), -1) {
  const bool follows =
      plan.needs_part(Positions::Part::kThinking) || plan.needs_part(Positions::Part::kAnswer);
  if (follows) parts[0] = ThinkingState(plan.thinking);
}

bool LiveTrack::states_were_truncated() {
  const std::lock_guard<std::mutex> lock(mutex);
  return states_truncated;
}

std::vector<EditEffect> LiveTrack::effects_before(int end) {
  std::vector<EditEffect> sums;
  {
    const std::lock_guard<std::mutex> lock(prompt->mutex);
    sums = prompt->effects;
  }
  const std::lock_guard<std::mutex> lock(mutex);
  for (const auto& [index, of_row] : answer_effects) {
    if (index >= end) break;
    for (size_t i = 0; i < of_row.size(); ++i) sums[i].add(of_row[i]);
  }
  return sums;
}

LiveRequest::LiveRequest(LivePlan given, size_t completions) : plan(std::move(given)), id(next_id++) {
  tracks_.resize(completions);
  for (size_t i = 0; i < completions; ++i)
    tracks_[i] = std::make_unique<LiveTrack>(plan, /*plain=*/pair_of(i) != i);
}

void LiveRequest::set_prompt(size_t index, int n_prompt, size_t computed_by) {
  tracks_[index]->n_prompt = n_prompt;
  tracks_[index]->prompt = tracks_[computed_by].get();
}

void LiveRequest::fail(const std::string& sentence) {
  const std::lock_guard<std::mutex> lock(failure_mutex_);
  if (failure_.empty()) failure_ = sentence;
}

std::string LiveRequest::failure() const {
  const std::lock_guard<std::mutex> lock(failure_mutex_);
  return failure_;
}

}  // namespace tapline
