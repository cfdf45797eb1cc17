#include <algorithm>
#include <memory>
#include <string>

#include "armed/graph_edits.h"

namespace tapline {

namespace {

std::string name_before_edits(size_t layer) {
  return "before_edits-" + std::to_string(layer);
}

}  // namespace

std::vector<std::string> GraphEdits::outputs_before_edits() const {
  std::vector<std::string> names(layers_.size());
  for (size_t il = 0; armed_ && il < layers_.size(); ++il) {
    if (layers_[il].changes()) names[il] = name_before_edits(il);
  }
  return names;
}

ggml_tensor* GraphEdits::extend(const llm_graph_context& graph, ggml_tensor* output, int il) {
  if (!armed_ || il < 0 || static_cast<size_t>(il) >= layers_.size()) return output;
  // Every graph has the input, even if none of its layers is armed yet: it must not be used again once one
  // is.
  RowInput& input = input_of(graph);
  Layer& layer = layers_[static_cast<size_t>(il)];
  if (!layer.armed()) return output;
  const int64_t rows = output->ne[1];
  const bool every_row = rows == graph.n_tokens;
  if (!every_row) layer.prunes = true;
  if (rows == 0) return output;
  const bool fits = output->type == GGML_TYPE_F32 && ggml_is_contiguous(output) && output->ne[0] == n_embd_ &&
                    ggml_nelements(output) == rows * n_embd_ && (every_row || rows == graph.n_outputs);
  if (!fits) {
    mismatch_ = true;
    return output;
  }
  // Models give one name to several tensors of a block, and the callback looks for this one. Where it remains
  // the block's output, the model names it next.
  if (layer.changes()) ggml_set_name(output, name_before_edits(static_cast<size_t>(il)).c_str());
  RowInput::Part part;
  part.device = *layer.device;
  part.outputs_only = !every_row;
  part.count = rows;
  ggml_tensor* const at = numbers(graph, input, part);
  std::vector<ggml_tensor*> added;
  for (size_t i = 0; i < layer.dots->size(); ++i) {
    added.push_back(layer.dots->extend(graph.ctx0, output, i));
    store(graph, layer, added.back(), at, layer.first_dot + static_cast<int>(i));
  }
  if (layer.copies[0].armed()) layer.copies[0].extend(graph.ctx0, graph.gf, output, at);
  ggml_tensor* edited = output;
  for (size_t i = 0; i < layer.stages.size(); ++i) {
    const Stage& stage = layer.stages[i];
    if (stage.edits.parts() == 0) continue;
    part.layer = il;
    part.stage = i;
    ggml_tensor* lengths = nullptr;
    ggml_tensor* changes = nullptr;
    edited = stage.edits.extend(graph.ctx0, edited, numbers(graph, input, part), &lengths, &changes);
    added.insert(added.end(), {edited, lengths});
    store(graph, layer, lengths, at, stage.lengths);
    if (changes != nullptr) store(graph, layer, changes, at, stage.changes);
  }
  if (layer.copies[1].armed()) layer.copies[1].extend(graph.ctx0, graph.gf, edited, at);
  if (proof_ != nullptr) {
    Seen& seen = (*proof_)[static_cast<size_t>(il)];
    ++seen.times;
    seen.before = output;
    seen.after = edited;
    for (const ggml_tensor* node : added) note_added(node, seen);
  }
  return edited;
}

/// The input of a graph that is being built.
RowInput& GraphEdits::input_of(const llm_graph_context& graph) {
  for (const llm_graph_input_ptr& each : graph.res->inputs) {
    if (auto* const found = dynamic_cast<RowInput*>(each.get())) return *found;
  }
  auto input = std::make_unique<RowInput>(
      shape_, [this] { return shape_; },
      [this](const llama_ubatch& ubatch, const std::vector<RowInput::Part>& parts) {
        upload(ubatch, parts);
      });
  return static_cast<RowInput&>(*graph.res->add_input(std::move(input)));
}

/// A list of numbers in the device's memory, which the input fills in.
ggml_tensor* GraphEdits::numbers(const llm_graph_context& graph, RowInput& input, RowInput::Part part) const {
  bool known = false;
  for (const RowInput::Part& other : input.parts) {
    if (other.device != part.device) continue;
    // The rows of results are the same for all layers.
    if (part.layer < 0 && other.layer < 0 && part.outputs_only == other.outputs_only) {
      part.first = other.first;
      known = true;
      break;
    }
    part.first = std::max(part.first, other.first + RowInput::aligned(other.count));
  }
  if (!known) input.parts.push_back(part);
  return ggml_view_1d(graph.ctx0, devices_[part.device].numbers.tensor(), part.count,
                      static_cast<size_t>(part.first) * sizeof(int32_t));
}

/// Adds nodes that write one number per row into the device's results.
void GraphEdits::store(const llm_graph_context& graph, const Layer& layer, ggml_tensor* values,
                       ggml_tensor* at, int slot) const {
  const Device& device = devices_[*layer.device];
  const size_t stride = static_cast<size_t>(device.slots) * sizeof(float);
  ggml_tensor* const column = ggml_view_2d(graph.ctx0, device.results.tensor(), 1, row_limit_ + 1, stride,
                                           static_cast<size_t>(slot) * sizeof(float));
  ggml_build_forward_expand(graph.gf, ggml_set_rows(graph.ctx0, column, values, at));
}

/// The batch index of a row of a micro-batch, or -1.
int GraphEdits::index_of(const llama_ubatch& ubatch, uint32_t row) const {
  if (batch_ == nullptr || ubatch.token == nullptr || ubatch.n_seq_id[row] != 1) return -1;
  const auto found = indices_.find(row_key(ubatch.seq_id[row][0], ubatch.pos[row]));
  if (found == indices_.end() || batch_->token[found->second] != ubatch.token[row]) return -1;
  return found->second;
}

void GraphEdits::upload(const llama_ubatch& ubatch, const std::vector<RowInput::Part>& parts) {
  std::vector<int> indices(ubatch.n_tokens);
  for (uint32_t row = 0; row < ubatch.n_tokens; ++row) {
    indices[row] = index_of(ubatch, row);
    mismatch_ |= indices[row] < 0;
  }
  for (size_t device = 0; device < devices_.size(); ++device) {
    std::vector<int32_t> numbers;
    for (const RowInput::Part& part : parts) {
      if (part.device != device) continue;
      numbers.resize(static_cast<size_t>(part.first), 0);
      for (uint32_t row = 0; row < ubatch.n_tokens; ++row) {
        if (part.outputs_only && ubatch.output[row] == 0) continue;
        const int index = indices[row];
        if (part.layer < 0) {
          numbers.push_back(index < 0 ? static_cast<int32_t>(row_limit_) : index);
        } else {
          const Layer& layer = layers_[static_cast<size_t>(part.layer)];
          numbers.push_back(index < 0 ? 0 : layer.stages[part.stage].rows[static_cast<size_t>(index)]);
        }
      }
      mismatch_ |= numbers.size() != static_cast<size_t>(part.first + part.count);
      numbers.resize(static_cast<size_t>(part.first + part.count), 0);
    }
    if (numbers.empty()) continue;
    // In the order of the device's work: an earlier micro-batch may still read its numbers.
    ggml_backend_tensor_set_async(devices_[device].backend, devices_[device].numbers.tensor(), numbers.data(),
                                  0, numbers.size() * sizeof(int32_t));
  }
}

}  // namespace tapline
