#include "armed/graph_edits.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace tapline {

std::pair<unsigned, std::set<const Edit*>>& GraphEdits::Needs::stage(size_t index) {
  if (stages.size() <= index) stages.resize(index + 1, {LayerEdits::kLengths, {}});
  return stages[index];
}

/// The edits of a row are in the order of their stages.
std::map<int, GraphEdits::Needs> GraphEdits::needs_of(const BatchEdits& edits, const std::set<Place>& lengths,
                                                      const std::vector<Dot>& dots,
                                                      const std::set<CopiedRows>& copies) {
  std::map<int, Needs> needs;
  for (const CopiedRows& copied : copies) needs[copied.layer].copies[copied.edited ? 1 : 0] = true;
  for (const Place& place : lengths) needs[place.computed_at().layer].stage(0);
  for (const Dot& dot : dots) {
    Needs& layer = needs[dot.layer];
    layer.stage(0);
    layer.dots.push_back(&dot);
  }
  for (const auto& [place, rows] : edits.by_place()) {
    std::map<int, size_t> stages;  // by row
    for (const RowEdit& row : rows) {
      auto& [parts, different] = needs[place.layer].stage(stages[row.batch_index]++);
      parts |= LayerEdits::parts_of(*row.edit);
      if (!row.edit->neutral()) different.insert(row.edit);
    }
  }
  return needs;
}

/// Whether a graph with the armed parts and these has room for its nodes: ggml aborts the process beyond its
/// size.
bool GraphEdits::has_room(const std::map<int, Needs>& needs) const {
  static const Needs none;
  int nodes = 0;
  for (size_t il = 0; il < layers_.size(); ++il) {
    const Layer& layer = layers_[il];
    const auto found = needs.find(static_cast<int>(il));
    const Needs& needed = found == needs.end() ? none : found->second;
    for (size_t i = 0; i < std::max(layer.stages.size(), needed.stages.size()); ++i) {
      unsigned parts = i < needed.stages.size() ? needed.stages[i].first : 0;
      if (i < layer.stages.size()) parts |= layer.stages[i].edits.parts();
      nodes += LayerEdits::nodes(parts);
    }
    if (layer.dots) nodes += LayerDots::nodes(layer.dots->grown(needed.dots.size()));
    for (size_t i = 0; i < layer.copies.size(); ++i)
      nodes += needed.copies[i] || layer.copies[i].armed() ? RowCopies::kNodes : 0;
  }
  const int spare = 64 + plain_nodes_ / 8;  // graphs of other sizes may have more nodes than the one counted
  return plain_nodes_ + nodes + spare <= node_limit_;
}

/// Armed layers stay armed.
void GraphEdits::arm_layers(const std::map<int, Needs>& needs) {
  const auto is_armed = [this](const auto& entry) {
    const Layer& layer = layers_[static_cast<size_t>(entry.first)];
    const Needs& needed = entry.second;
    if (needed.stages.size() > layer.stages.size() || needed.dots.size() > layer.dots->size()) return false;
    for (size_t i = 0; i < needed.stages.size(); ++i) {
      if (!layer.stages[i].edits.is_armed(needed.stages[i].first, needed.stages[i].second.size()))
        return false;
    }
    for (size_t i = 0; i < needed.copies.size(); ++i) {
      if (needed.copies[i] && !layer.copies[i].armed()) return false;
    }
    return true;
  };
  if (std::all_of(needs.begin(), needs.end(), is_armed)) return;
  llama_synchronize(ctx_);  // tables may be read by a graph that still runs
  for (const auto& [il, needed] : needs) {
    Layer& layer = layers_[static_cast<size_t>(il)];
    ggml_backend_t backend = devices_[*layer.device].backend;
    while (layer.stages.size() < needed.stages.size())
      layer.stages.push_back({LayerEdits(backend, n_embd_), -1, -1, {}});
    for (size_t i = 0; i < needed.stages.size(); ++i) {
      const auto& [parts, different] = needed.stages[i];
      LayerEdits& edits = layer.stages[i].edits;
      if (!edits.is_armed(parts, different.size())) edits.arm(parts, different.size());
    }
    layer.dots->arm(layer.dots->grown(needed.dots.size()));
    for (size_t i = 0; i < needed.copies.size(); ++i) {
      // One more row for tokens that are not in the batch.
      if (needed.copies[i]) layer.copies[i].arm(backend, n_embd_, row_limit_ + 1);
    }
  }
  assign_slots();
}

void GraphEdits::assign_slots() {
  std::vector<int64_t> lists(devices_.size(), 2);
  for (Device& device : devices_) {
    device.slots = 0;
    device.armed = false;
  }
  for (Layer& layer : layers_) {
    if (!layer.armed()) continue;
    Device& device = devices_[*layer.device];
    device.armed = true;
    for (Stage& stage : layer.stages) {
      stage.lengths = stage.changes = -1;
      if (stage.edits.parts() == 0) continue;
      stage.lengths = device.slots++;
      if ((stage.edits.parts() & LayerEdits::kChanges) != 0) stage.changes = device.slots++;
      ++lists[*layer.device];
    }
    layer.first_dot = device.slots;
    device.slots += static_cast<int>(layer.dots->size());
  }
  ++shape_;
  for (size_t i = 0; i < devices_.size(); ++i) {
    Device& device = devices_[i];
    if (!device.armed) continue;
    const int64_t numbers = lists[i] * RowInput::aligned(micro_limit_);
    if (!device.numbers || device.numbers.tensor()->ne[0] < numbers)
      device.numbers = Table(device.backend, GGML_TYPE_I32, numbers, 1);
    // One more row for tokens that are not in the batch.
    const int64_t results = device.slots * (row_limit_ + 1);
    if (results > 0 && (!device.results || device.results.tensor()->ne[0] < results))
      device.results = Table(device.backend, GGML_TYPE_F32, results, 1);
  }
}

bool GraphEdits::arm(const llama_batch& batch, const BatchEdits& edits, const std::set<Place>& lengths,
                     const std::vector<Dot>& dots, const std::set<CopiedRows>& copies) {
  const std::map<int, Needs> needs = needs_of(edits, lengths, dots, copies);
  if (!has_room(needs)) {
    disarm();
    return false;
  }
  const bool was_armed = armed_;
  armed_ = true;
  try {
    arm_layers(needs);
    // Graphs without our input would be used again.
    if (!was_armed && reserve() == nullptr)
      throw Error(ErrorCode::kOutOfMemory, "There is not enough memory for compute graphs with edits.");
  } catch (...) {
    disarm();
    throw;
  }
  assign_rows(batch, edits, needs);
  batch_ = &batch;
  copies_ = copies;
  mismatch_ = false;
  indices_.clear();
  outputs_.clear();
  for (int i = 0; i < batch.n_tokens; ++i) {
    indices_[row_key(batch.seq_id[i][0], batch.pos[i])] = i;
    outputs_.push_back(batch.logits[i] != 0);
  }
  return true;
}

/// Finds or makes a row in the tables for each edit and vector of the batch.
void GraphEdits::assign_rows(const llama_batch& batch, const BatchEdits& edits,
                             const std::map<int, Needs>& needs) {
  for (Layer& layer : layers_) {
    if (!layer.armed()) continue;
    layer.dots->begin_batch();
    for (Stage& stage : layer.stages) {
      stage.edits.begin_batch();
      stage.rows.assign(static_cast<size_t>(batch.n_tokens), 0);
    }
  }
  bool waited = false;
  const auto wait = [&] {
    if (!waited) llama_synchronize(ctx_);
    waited = true;
  };
  for (const auto& [il, needed] : needs) {
    Layer& layer = layers_[static_cast<size_t>(il)];
    std::vector<std::map<const Edit*, int>> found(needed.stages.size());
    for (size_t i = 0; i < needed.stages.size(); ++i) {
      // Known ones first, so that none of them is replaced.
      LayerEdits& tables = layer.stages[i].edits;
      for (const Edit* edit : needed.stages[i].second) found[i][edit] = tables.find(*edit);
      for (auto& [edit, row] : found[i]) {
        if (row < 0) row = tables.add(*edit, wait);
      }
    }
    std::vector<const Dot*> unknown;
    for (const Dot* dot : needed.dots) {
      if (!layer.dots->find(*dot)) unknown.push_back(dot);
    }
    for (const Dot* dot : unknown) {
      if (layer.dots->find(*dot)) continue;
      wait();
      layer.dots->add(*dot);
    }
    const std::vector<RowEdit>* rows = edits.at(Place{il});
    if (rows == nullptr) continue;
    std::map<int, size_t> stages;
    for (const RowEdit& row : *rows) {
      const size_t i = stages[row.batch_index]++;
      if (row.edit->neutral()) continue;
      layer.stages[i].rows[static_cast<size_t>(row.batch_index)] = found[i].at(row.edit);
    }
  }
}

void GraphEdits::disarm() {
  batch_ = nullptr;
  if (!armed_) return;
  armed_ = false;
  for (Layer& layer : layers_) {
    for (Stage& stage : layer.stages) stage.edits.disarm();
    if (layer.dots) layer.dots->disarm();
    for (RowCopies& copies : layer.copies) copies.disarm();
  }
  ++shape_;
}

void GraphEdits::collect(const llama_batch& batch, const BatchEdits& edits) {
  batch_ = nullptr;
  if (mismatch_)
    throw Error(ErrorCode::kInternal, "The compute graph has unexpected rows at the end of a block.");
  llama_synchronize(ctx_);
  std::set<ggml_backend_t> fetching;
  for (const CopiedRows& copied : copies_) {
    Layer& layer = layers_[static_cast<size_t>(copied.layer)];
    layer.copies[copied.edited ? 1 : 0].fetch(batch.n_tokens);
    fetching.insert(devices_[*layer.device].backend);
  }
  for (ggml_backend_t backend : fetching) ggml_backend_synchronize(backend);
  for (Device& device : devices_) {
    device.read.resize(static_cast<size_t>(device.slots) * static_cast<size_t>(batch.n_tokens));
    if (device.read.empty()) continue;
    ggml_backend_tensor_get(device.results.tensor(), device.read.data(), 0,
                            device.read.size() * sizeof(float));
  }
  for (const auto& [place, rows] : edits.by_place()) {
    const Layer& layer = layers_[static_cast<size_t>(place.layer)];
    std::map<int, size_t> stages;
    for (const RowEdit& row : rows) {
      const Stage& stage = layer.stages[stages[row.batch_index]++];
      RowChange change;
      change.row_length = std::sqrt(result(layer, stage.lengths, row.batch_index));
      if (layer.prunes && batch.logits[row.batch_index] == 0) continue;  // nothing reads this row
      const int number = stage.rows[static_cast<size_t>(row.batch_index)];
      const auto known = stage.edits.change_length(number, change.row_length);
      change.change_length = known ? *known : std::sqrt(result(layer, stage.changes, row.batch_index));
      // The length of the change may not show that the activation was not finite before.
      if (!std::isfinite(change.row_length)) change.change_length = change.row_length;
      row.effect->add(change);
    }
  }
}

const float* GraphEdits::rows(CopiedRows copied) const {
  return layers_[static_cast<size_t>(copied.layer)].copies[copied.edited ? 1 : 0].values();
}

bool GraphEdits::computed(int layer, int batch_index) const {
  return !layers_[static_cast<size_t>(layer)].prunes || outputs_[static_cast<size_t>(batch_index)];
}

double GraphEdits::result(const Layer& layer, int slot, int batch_index) const {
  const auto index = static_cast<size_t>(batch_index);
  const bool missing = layer.prunes && !outputs_[index];
  if (slot < 0 || missing) return std::numeric_limits<double>::quiet_NaN();
  const Device& device = devices_[*layer.device];
  return device.read[index * static_cast<size_t>(device.slots) + static_cast<size_t>(slot)];
}

double GraphEdits::length(Place place, int batch_index) const {
  const Layer& layer = layers_[static_cast<size_t>(place.computed_at().layer)];
  return layer.has_edits() ? std::sqrt(result(layer, layer.stages.front().lengths, batch_index))
                           : std::numeric_limits<double>::quiet_NaN();
}

double GraphEdits::product(const Dot& dot, int batch_index) {
  Layer& layer = layers_[static_cast<size_t>(dot.layer)];
  const auto at = layer.dots->find(dot);
  if (!at) return std::numeric_limits<double>::quiet_NaN();
  return result(layer, layer.first_dot + static_cast<int>(*at), batch_index);
}

}  // namespace tapline
