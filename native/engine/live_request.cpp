#include "engine/live_request.h"

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

}  // namespace

double LiveProbe::score(const float* row) const {
  return 1 / (1 + std::exp(-(product(row, weight) + bias)));
}

double LiveProjection::of(const float* row) const {
  return product(row, direction->values) / direction->length;
}

LiveTrack::LiveTrack(const LivePlan& plan)
    : effects(plan.edits.size()), reached(plan.conditions.size(), -1) {}

LiveRequest::LiveRequest(LivePlan given, size_t completions) : plan(std::move(given)) {
  for (size_t i = 0; i < completions; ++i) tracks_.push_back(std::make_unique<LiveTrack>(plan));
}

}  // namespace tapline
