#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/live_batch.h"
#include "engine/live_check.h"

namespace tapline {

/// An empty reading of a watched row, whose places the tap then reads.
LiveReading LiveBatch::reading_of(const LivePlan& plan, Owner& owner, int batch_index) {
  LiveReading reading;
  const LiveWatch& watch = plan.watch;
  const auto missing = std::numeric_limits<float>::quiet_NaN();
  const size_t layers = watch.layers.size();
  if (watch.norms) reading.norms.assign(layers, missing);
  if (watch.lens_top > 0) {
    reading.lens_rows.assign(layers * static_cast<size_t>(n_embd_), 0);
    reading.lens_taken.assign(layers, false);
    const size_t tokens = watch.first_token(1 + watch.lenses.size(), 0);
    reading.lens_ids.assign(tokens, LLAMA_TOKEN_NULL);
    reading.lens_probabilities.assign(tokens, 0);
  }
  if (!watch.states.empty()) {
    const size_t values = layers * watched_width(watch, stream_, n_embd_);
    const size_t bytes = values * sizeof(float);
    if (owner.track->states_bytes + owner.states_bytes + bytes <= watch.states_bytes) {
      owner.states_bytes += bytes;
      reading.states.assign(values, missing);
    } else {
      owner.track->states_truncated = true;
    }
  }
  if (watch.norms || watch.lens_top > 0 || !reading.states.empty()) {
    for (const int layer : watch.layers) want(owner, {layer, watch.point}, batch_index);
  }
  reading.projections.assign(watch.projections.size(), std::numeric_limits<double>::quiet_NaN());
  for (const LiveProjection& projection : watch.projections) want(owner, projection.place, batch_index);
  reading.feature_rows.resize(watch.dictionaries.size());
  reading.features.resize(watch.dictionaries.size());
  reading.features_read.assign(watch.dictionaries.size(), false);
  for (const LiveDictionary& dictionary : watch.dictionaries) want(owner, dictionary.place, batch_index);
  return reading;
}

/// Called by the tap with the rows of one place, before they are edited; also with rows that are not its.
void LiveBatch::read(const TappedRows& tapped) {
  const bool guards = tapped.place() == Place{n_layer_ - 2};
  for (size_t at = 0; at < tapped.count; ++at) {
    const auto index = static_cast<size_t>((*tapped.indices)[at]);
    const float* values = tapped.values + at * tapped.width;
    Owner* const guarded = guarded_[index];
    if (guards && guarded != nullptr && !guarded->in_graph && overflows(row_length(values, tapped.width)))
      guarded->overflowed = true;
    if (row_at_[index] < 0) continue;
    Row& row = rows_[static_cast<size_t>(row_at_[index])];
    const Owner& owner = owners_[static_cast<size_t>(row.slot)];
    if (owner.in_graph) continue;
    const LivePlan& plan = owner.request->plan;
    for (size_t i = 0; i < plan.probes.size(); ++i) {
      if (plan.probes[i].place.computed_at() == tapped.place())
        row.reading.probes[i] = plan.probes[i].score(values);
    }
    if (row.watched) read_watched(plan.watch, tapped, values, row.reading);
  }
}

void LiveBatch::read_watched(const LiveWatch& watch, const TappedRows& tapped, const float* values,
                             LiveReading& reading) {
  const auto here = [&](const Place& place) { return place.computed_at() == tapped.place(); };
  for (size_t i = 0; i < watch.projections.size(); ++i) {
    if (here(watch.projections[i].place)) reading.projections[i] = watch.projections[i].of(values);
  }
  for (size_t i = 0; i < watch.dictionaries.size(); ++i) {
    if (here(watch.dictionaries[i].place)) reading.feature_rows[i].assign(values, values + tapped.width);
  }
  if (!watch.reads_layers()) return;
  for (size_t layer = 0; layer < watch.layers.size(); ++layer) {
    const Place place{watch.layers[layer], watch.point};
    if (!here(place)) continue;
    const float* part = values;
    size_t width = tapped.width;
    if (!watch.heads.empty()) {
      const size_t head_width = tapped.width / static_cast<size_t>(stream_.points.site(place).heads);
      heads_.clear();
      for (const int head : watch.heads) {
        const float* first = values + static_cast<size_t>(head) * head_width;
        heads_.insert(heads_.end(), first, first + head_width);
      }
      part = heads_.data();
      width = heads_.size();
    }
    if (watch.norms) reading.norms[layer] = static_cast<float>(row_length(part, width));
    if (!reading.states.empty()) std::copy_n(part, width, reading.states.data() + layer * width);
    if (watch.lens_top > 0) {
      std::copy_n(part, width, reading.lens_rows.data() + layer * width);
      reading.lens_taken[layer] = true;
    }
  }
}

/// Each dictionary reads all rows of its request at once. Rows that are not finite end their request
/// elsewhere.
void LiveBatch::read_features() {
  std::map<std::pair<const LiveRequest*, size_t>, std::vector<LiveReading*>> readings;
  for (Row& row : rows_) {
    const LiveRequest* request = owners_[static_cast<size_t>(row.slot)].request.get();
    for (size_t i = 0; i < row.reading.feature_rows.size(); ++i) {
      if (!row.reading.feature_rows[i].empty()) readings[{request, i}].push_back(&row.reading);
    }
  }
  for (auto& [key, read] : readings) {
    const auto& [request, i] = key;
    std::vector<float> rows;
    for (const LiveReading* reading : read)
      rows.insert(rows.end(), reading->feature_rows[i].begin(), reading->feature_rows[i].end());
    try {
      LiveDictionary::Strongest found =
          request->plan.watch.dictionaries[i].strongest(rows.data(), read.size(), n_threads_);
      for (size_t row = 0; row < read.size(); ++row) {
        read[row]->features[i] = std::move(found[row]);
        read[row]->features_read[i] = true;
      }
    } catch (const Error&) {
      // Stays unread.
    }
    for (LiveReading* reading : read) reading->feature_rows[i] = {};
  }
}

}  // namespace tapline
