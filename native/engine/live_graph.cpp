#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

#include "base/error.h"
#include "engine/live_batch.h"

namespace tapline {

bool LiveBatch::fits_graph(LiveRequest& request) const {
  if (!request.fits_graph) request.fits_graph = graph_computes(request.plan);
  return *request.fits_graph;
}

/// Whether all edits and readings of a plan can be computed in the graph.
bool LiveBatch::graph_computes(const LivePlan& plan) const {
  const LiveWatch& watch = plan.watch;
  const bool only_numbers =
      watch.lens_top == 0 && watch.states.empty() && watch.heads.empty() && watch.dictionaries.empty();
  if (!only_numbers) return false;
  for (const Edit& edit : plan.edits) {
    if (!graph_->takes(edit)) return false;
  }
  for (const LiveProbe& probe : plan.probes) {
    if (!graph_->reads(probe.place)) return false;
  }
  for (const LiveProjection& projection : watch.projections) {
    if (!graph_->reads(projection.place)) return false;
  }
  // Where rows without logits are checked.
  if (!plan.edits.empty() && n_layer_ > 1 && !graph_->reads({n_layer_ - 2})) return false;
  return std::all_of(watch.layers.begin(), watch.layers.end(), [&](int layer) {
    return !watch.norms || graph_->reads(Place{layer, watch.point});
  });
}

Dot LiveBatch::probe_dot(const LiveRequest& request, size_t index) {
  const LiveProbe& probe = request.plan.probes[index];
  return {probe.place.computed_at().layer, {request.id, 0, static_cast<int>(index)}, [&probe](size_t i) {
            return static_cast<float>(probe.weight[i]);
          }};
}

Dot LiveBatch::projection_dot(const LiveRequest& request, size_t index) {
  const LiveProjection& projection = request.plan.watch.projections[index];
  const Direction& direction = *projection.direction;
  return {projection.place.computed_at().layer,
          {request.id, 1, static_cast<int>(index)},
          [&direction](size_t i) { return static_cast<float>(direction.values[i] / direction.length); }};
}

/// The probes and projections of all requests with a row that is read.
std::vector<Dot> LiveBatch::dots_of_rows() const {
  std::set<const LiveRequest*> probed;
  std::set<const LiveRequest*> projected;
  for (const Row& row : rows_) {
    const Owner& owner = owners_[static_cast<size_t>(row.slot)];
    if (!owner.in_graph) continue;
    const LiveRequest* request = owner.request.get();
    probed.insert(request);
    if (row.watched) projected.insert(request);
  }
  std::vector<Dot> dots;
  for (const LiveRequest* request : probed) {
    for (size_t i = 0; i < request->plan.probes.size(); ++i) dots.push_back(probe_dot(*request, i));
  }
  for (const LiveRequest* request : projected) {
    for (size_t i = 0; i < request->plan.watch.projections.size(); ++i)
      dots.push_back(projection_dot(*request, i));
  }
  return dots;
}

bool LiveBatch::any_in_graph() const {
  return std::any_of(owners_.begin(), owners_.end(), [](const Owner& owner) { return owner.in_graph; });
}

/// Prepares the graph for the requests that it can compute. False if they do not fit: the callback then
/// computes them.
bool LiveBatch::arm_graph(const llama_batch& batch) {
  if (!any_in_graph()) {
    if (graph_) graph_->disarm();
    return true;
  }
  try {
    return graph_->arm(batch, graph_edits_, lengths_, dots_of_rows());
  } catch (const Error&) {
    without_graph_ = true;  // the callback needs no memory of the device
    return false;
  }
}

/// After a successful decode: the effects and readings of the requests in the graph.
void LiveBatch::collect_graph(const llama_batch& batch) {
  try {
    graph_->collect(batch, graph_edits_);
  } catch (const Error& error) {
    fail_owners(/*in_graph=*/true, error.what());
    return;
  }
  for (int i = 0; i < batch.n_tokens; ++i) {
    Owner* const guarded = guarded_[static_cast<size_t>(i)];
    if (guarded != nullptr && guarded->in_graph && overflows(graph_->length({n_layer_ - 2}, i)))
      guarded->overflowed = true;
    const int at = row_at_[static_cast<size_t>(i)];
    if (at < 0) continue;
    Row& row = rows_[static_cast<size_t>(at)];
    if (owners_[static_cast<size_t>(row.slot)].in_graph) read_from_graph(row, i);
  }
}

void LiveBatch::read_from_graph(Row& row, int batch_index) {
  const LiveRequest& request = *owners_[static_cast<size_t>(row.slot)].request;
  const LivePlan& plan = request.plan;
  LiveReading& reading = row.reading;
  for (size_t i = 0; i < plan.probes.size(); ++i) {
    const double product = graph_->product(probe_dot(request, i), batch_index);
    reading.probes[i] = plan.probes[i].score_of(product);
  }
  for (size_t i = 0; i < reading.projections.size(); ++i)
    reading.projections[i] = graph_->product(projection_dot(request, i), batch_index);
  for (size_t layer = 0; layer < reading.norms.size(); ++layer) {
    const Place place{plan.watch.layers[layer], plan.watch.point};
    reading.norms[layer] = static_cast<float>(graph_->length(place, batch_index));
  }
}

}  // namespace tapline
