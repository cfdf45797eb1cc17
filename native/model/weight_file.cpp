#include "model/weight_file.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "ggml-cpp.h"
#include "llama.h"

namespace tapline {

namespace {

/// The paths of all parts; a model that is not split has one.
std::vector<std::string> parts_of(const std::string& path, const gguf_context* first) {
  const int64_t key = gguf_find_key(first, "split.count");
  const int count =
      key < 0 || gguf_get_kv_type(first, key) != GGUF_TYPE_UINT16 ? 1 : gguf_get_val_u16(first, key);
  std::array<char, 4096> text{};
  if (count < 2 || llama_split_prefix(text.data(), text.size(), path.c_str(), 0, count) == 0) return {path};
  const std::string prefix = text.data();
  std::vector<std::string> parts;
  for (int part = 0; part < count; ++part) {
    llama_split_path(text.data(), text.size(), prefix.c_str(), part, count);
    parts.emplace_back(text.data());
  }
  return parts;
}

}  // namespace

WeightFile::WeightFile(const Model& model) {
  std::vector<std::string> parts{model.info().path};
  for (size_t i = 0; i < parts.size(); ++i) {
    ggml_context* shapes = nullptr;
    const gguf_context_ptr file(gguf_init_from_file(parts[i].c_str(), {/*no_alloc=*/true, &shapes}));
    const ggml_context_ptr owned(shapes);
    if (!file) throw_error(ErrorCode::kModelLoad, "\"", parts[i], "\" is not a readable GGUF file.");
    if (i == 0) parts = parts_of(parts[0], file.get());
    const auto data = static_cast<double>(gguf_get_data_offset(file.get()));
    for (int64_t t = 0; t < gguf_get_n_tensors(file.get()); ++t) {
      const char* name = gguf_get_tensor_name(file.get(), t);
      const ggml_tensor* shape = ggml_get_tensor(shapes, name);
      weights_[name] = {parts[i], data + static_cast<double>(gguf_get_tensor_offset(file.get(), t)),
                        gguf_get_tensor_type(file.get(), t), shape->ne[0], ggml_nrows(shape)};
    }
  }
}

const Weight& WeightFile::at(const ggml_tensor* weight) const {
  const auto found = weights_.find(weight->name);
  if (found == weights_.end() || found->second.type != weight->type ||
      found->second.row * found->second.rows != ggml_nelements(weight))
    throw_error(ErrorCode::kInvalidArgument, "The model's file does not have the weight '", weight->name,
                "' as it was loaded.");
  return found->second;
}

void WeightFile::read(const ggml_tensor* weight, std::vector<float>& values, ThreadTeam& team) const {
  const Weight& place = at(weight);
  values.resize(static_cast<size_t>(place.row * place.rows));
  const auto row_bytes = static_cast<double>(ggml_row_size(weight->type, place.row));
  const int64_t each = (place.rows + team.size() - 1) / team.size();
  team.parallel_for(static_cast<int>((place.rows + each - 1) / each), [&](int which) {
    const int64_t begin = which * each;
    Weight part = place;
    part.offset += static_cast<double>(begin) * row_bytes;
    part.rows = std::min(each, place.rows - begin);
    each_dequantised(part, [&](const float* piece, int64_t first, int64_t count) {
      std::copy_n(piece, count * place.row, values.data() + (begin + first) * place.row);
    });
  });
}

}  // namespace tapline
