#include "engine/live_answer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "common.h"

namespace tapline {

namespace {

/// The choice in a chunk or an answer, or null.
json* choice_of(json& part) {
  if (!part.is_object() || !part.contains("choices") || part.at("choices").empty()) return nullptr;
  return &part.at("choices").front();
}

json* last_choice(json& parts) {
  if (!parts.is_array()) return choice_of(parts);
  for (size_t i = parts.size(); i > 0; --i) {
    if (json* choice = choice_of(parts[i - 1])) return choice;
  }
  return nullptr;
}

json number(double value) {
  return json::make(std::isfinite(value) ? common_json_value(value) : common_json_value());
}

}  // namespace

LiveAnswer::LiveAnswer(std::shared_ptr<LiveRequest> request, const llama_vocab* vocab)
    : request_(std::move(request)), vocab_(vocab), reported_(request_->size()) {}

std::string LiveAnswer::piece(llama_token token) const {
  return common_token_to_piece(vocab_, token, /*special=*/true);
}

void LiveAnswer::add_tokens(json& chunks, size_t index, int decoded, const std::vector<llama_token>& last) {
  json* choice = last_choice(chunks);
  if (choice == nullptr || decoded <= reported_[index]) return;
  json read = tokens(index, std::exchange(reported_[index], decoded), decoded, last);
  if (!read.empty()) (*choice)["tapline"]["tokens"] = std::move(read);
}

void LiveAnswer::finish(json& answer, size_t index, int decoded, const std::vector<llama_token>& all) {
  json* choice = last_choice(answer);
  if (choice == nullptr) return;
  json& extension = (*choice)["tapline"];
  extension = json::object();
  json read = tokens(index, std::exchange(reported_[index], decoded), decoded, all);
  if (!read.empty()) extension["tokens"] = std::move(read);
  LiveTrack& track = request_->track(index);
  json before = prompt(*track.prompt);
  json capture = keep_states(track, index, decoded);
  if (!before.empty()) extension["prompt"] = std::move(before);
  if (track.plain) {
    extension["pair_of"] = request_->pair_of(index);
  } else if (!request_->plan.edits.empty()) {
    extension["interventions"] = interventions(track.effects_before(track.n_prompt - 1 + decoded));
  }
  if (!capture.empty()) extension["capture"] = std::move(capture);
  extension["computed"] = computed(track);
  const std::lock_guard<std::mutex> lock(track.mutex);
  if (track.stopped) (*choice)["finish_reason"] = "monitor";
}

/// How the edits and readings of a completion were computed.
const char* LiveAnswer::computed(LiveTrack& track) {
  bool in_graph = false;
  bool by_callback = false;
  for (LiveTrack* part : {track.prompt, &track}) {
    const std::lock_guard<std::mutex> lock(part->mutex);
    in_graph |= part->in_graph;
    by_callback |= part->by_callback;
  }
  return !in_graph ? "callback" : by_callback ? "graph and callback" : "graph";
}

/// Collects the requested rows and describes them. Rejected guesses of a draft model have no rows: those
/// after the last chosen token are omitted.
json LiveAnswer::keep_states(LiveTrack& track, size_t index, int decoded) {
  const LiveWatch& watch = request_->plan.watch;
  if (watch.states.empty()) return json::object();
  LiveTrack& prompt = *track.prompt;
  const int n_prompt = track.n_prompt;
  LiveStates states;
  states.id = watch.states + "-" + std::to_string(index);
  states.n_prompt = n_prompt;
  states.layers = watch.layers;
  states.values.resize(watch.layers.size());
  const auto add = [&](LiveTrack& holder, int from, int to) {
    const std::lock_guard<std::mutex> lock(holder.mutex);
    for (auto at = holder.rows.lower_bound(from); at != holder.rows.end() && at->first < to; ++at) {
      const std::vector<float>& row = at->second.states;
      if (row.empty()) continue;
      states.rows.push_back(at->first);
      states.tokens.push_back(at->second.token);
      const size_t width = row.size() / watch.layers.size();
      for (size_t layer = 0; layer < watch.layers.size(); ++layer) {
        const auto first = row.begin() + static_cast<std::ptrdiff_t>(layer * width);
        states.values[layer].insert(states.values[layer].end(), first,
                                    first + static_cast<std::ptrdiff_t>(width));
      }
    }
  };
  add(prompt, 0, n_prompt);
  add(track, n_prompt, n_prompt - 1 + decoded);
  json capture = {{"id", states.id}, {"rows", states.rows.size()}, {"layers", states.layers}};
  if (watch.point != Point::kBlockOut) capture["point"] = name_of(watch.point);
  if (!watch.heads.empty()) capture["heads"] = watch.heads;
  std::string note;
  if (track.states_were_truncated() || prompt.states_were_truncated())
    note = "Rows beyond the limit of a capture were not saved.";
  // The last block computes only rows with outputs, so the others are NaN in its array.
  for (size_t layer = 0; layer < watch.layers.size(); ++layer) {
    const std::vector<float>& values = states.values[layer];
    const size_t width = states.rows.empty() ? 0 : values.size() / states.rows.size();
    size_t missing = 0;
    for (size_t row = 0; row < states.rows.size(); ++row) missing += std::isnan(values[row * width]) ? 1 : 0;
    if (missing == 0) continue;
    capture["missing"].push_back({{"layer", watch.layers[layer]}, {"rows", missing}});
    note += (note.empty() ? "" : " ") + std::string("Block ") + std::to_string(watch.layers[layer]) +
            " did not compute " + std::to_string(missing) + " of the " + std::to_string(states.rows.size()) +
            " rows; they are NaN.";
  }
  if (!note.empty()) capture["note"] = note;
  states_.push_back(std::move(states));
  return capture;
}

/// Generated tokens from..to-1, each with the reading of the row that predicted it. `ending` are the last
/// ids.
json LiveAnswer::tokens(size_t index, int from, int to, const std::vector<llama_token>& ending) const {
  json list = json::array();
  LiveTrack& track = request_->track(index);
  LiveTrack& prompt = *track.prompt;
  const int n_prompt = track.n_prompt;
  for (int k = from; k < to; ++k) {
    json entry;
    const int row = n_prompt - 1 + k;
    LiveTrack& holder = k == 0 ? prompt : track;
    {
      const std::lock_guard<std::mutex> lock(holder.mutex);
      const auto found = holder.rows.find(row);
      if (found == holder.rows.end() || !found->second.next_watched) continue;
      entry = reading(found->second);
      if (entry.empty()) continue;
    }
    entry["index"] = k;
    llama_token token = -1;
    const int from_end = to - k;
    if (static_cast<size_t>(from_end) <= ending.size()) {
      token = ending[ending.size() - static_cast<size_t>(from_end)];
    } else {
      const std::lock_guard<std::mutex> lock(track.mutex);
      const auto found = track.generated.find(k);
      if (found != track.generated.end()) token = found->second;
    }
    if (token >= 0) {
      entry["token_id"] = token;
      entry["token"] = piece(token);
    }
    list.push_back(std::move(entry));
  }
  return list;
}

/// The watched tokens of the prompt, each with the reading of its row.
json LiveAnswer::prompt(LiveTrack& track) const {
  json list = json::array();
  const std::lock_guard<std::mutex> lock(track.mutex);
  for (const auto& [index, row] : track.rows) {
    if (index >= track.n_prompt || !request_->plan.watch.positions.contains(index, track.n_prompt)) continue;
    json entry = reading(row);
    if (entry.empty()) continue;
    entry["index"] = index;
    entry["token_id"] = row.token;
    entry["token"] = piece(row.token);
    list.push_back(std::move(entry));
  }
  return list;
}

/// At most `count` tokens of a lens, from the most probable.
json LiveAnswer::candidates(const LiveReading& row, size_t first, int count) const {
  json list = json::array();
  for (size_t i = first; i < first + static_cast<size_t>(count) && row.lens_ids[i] >= 0; ++i) {
    const llama_token id = row.lens_ids[i];
    list.push_back({{"token_id", id}, {"token", piece(id)}, {"probability", row.lens_probabilities[i]}});
  }
  return list;
}

json LiveAnswer::reading(const LiveReading& row) const {
  const LivePlan& plan = request_->plan;
  const LiveWatch& watch = plan.watch;
  json entry = json::object();
  for (size_t i = 0; i < row.norms.size(); ++i)
    entry["norms"][std::to_string(watch.layers[i])] = number(row.norms[i]);
  if (watch.probes) {
    for (size_t i = 0; i < row.probes.size(); ++i)
      entry["probes"][plan.probes[i].name] = number(row.probes[i]);
  }
  for (size_t i = 0; i < row.projections.size(); ++i)
    entry["projections"][watch.projections[i].name] = number(row.projections[i]);
  for (size_t i = 0; i < row.features_read.size(); ++i) {
    json active = number(std::numeric_limits<double>::quiet_NaN());
    if (row.features_read[i]) {
      active = json::array();
      for (const LiveFeature& one : row.features[i])
        active.push_back({{"feature", one.feature}, {"activation", one.activation}});
    }
    entry["features"][watch.dictionaries[i].name] = std::move(active);
  }
  for (size_t lens = 0; !row.lens_ids.empty() && lens <= watch.lenses.size(); ++lens) {
    for (size_t layer = 0; layer < watch.layers.size(); ++layer) {
      json list = candidates(row, watch.first_token(lens, layer), watch.lens_top);
      if (list.empty()) continue;
      json& of_lens = lens == 0 ? entry["lens"] : entry["lenses"][watch.lenses[lens - 1].name];
      of_lens[std::to_string(watch.layers[layer])] = std::move(list);
    }
  }
  return entry;
}

json LiveAnswer::interventions(const std::vector<EditEffect>& effects) const {
  json list = json::array();
  for (size_t i = 0; i < effects.size(); ++i) {
    const EditEffect& effect = effects[i];
    const double rows = std::max<double>(1, static_cast<double>(effect.rows));
    json entry = json::parse(request_->plan.labels[i]);
    entry["rows"] = effect.rows;
    entry["mean_row_length"] = number(effect.row_length / rows);
    entry["mean_change_length"] = number(effect.change_length / rows);
    if (effect.rows == 0) {
      entry["note"] = "No row was changed: none of the positions was computed, or the condition was not met.";
    } else if (effect.change_length == 0) {
      entry["note"] = "Every change was zero: this is the unmodified answer.";
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace tapline
