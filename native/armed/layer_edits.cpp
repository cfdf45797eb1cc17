#include "armed/layer_edits.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tapline {

namespace {

/// Bounds and lengths are limited to this, so that a factor of 0 never meets an infinity.
constexpr float kLargest = 3e38F;

float limited(double value) {
  return static_cast<float>(std::max<double>(-kLargest, std::min<double>(value, kLargest)));
}

/// Whether the added vector is a multiple of the activation's length.
bool is_relative(const Edit& edit) {
  return edit.direction && edit.strength != 0.0F && edit.unit == StrengthUnit::kRowNorm;
}

}  // namespace

bool LayerEdits::takes(const Edit& edit) {
  const bool known =
      edit.kind == EditKind::kAffine || edit.kind == EditKind::kProjectOut || edit.kind == EditKind::kClamp;
  return known && edit.heads.empty();
}

unsigned LayerEdits::parts_of(const Edit& edit) {
  if (edit.neutral()) return kLengths;
  if (edit.kind != EditKind::kAffine) return kLengths | kAlong | kChanges;
  unsigned parts = kLengths;
  if (edit.scale != 1.0F) parts |= kScale | kChanges;
  if (edit.direction && edit.strength != 0.0F) parts |= is_relative(edit) ? kRelative : kAdd;
  return parts;
}

void LayerEdits::arm(unsigned parts, size_t edits) {
  const unsigned wanted = parts_ | parts;
  size_t capacity = std::max<size_t>(2, rows_.size());
  while (capacity <= edits) capacity *= 2;
  // A new part needs no new rows of the others, but edits are written to all parts at once.
  rows_.assign(capacity, Row());
  parts_ = wanted;
  const auto count = static_cast<int64_t>(capacity);
  const std::vector<float> neutral(static_cast<size_t>(n_embd_), -0.0F);
  const auto make = [&](Table& table, unsigned part, int64_t width, const float* first) {
    if ((wanted & part) == 0) return;
    if (!table || table.tensor()->ne[1] != count) table = Table(backend_, GGML_TYPE_F32, width, count);
    // Every row: memory that was never written may hold anything.
    std::vector<float> all;
    for (int64_t row = 0; row < count; ++row) all.insert(all.end(), first, first + width);
    ggml_backend_tensor_set(table.tensor(), all.data(), 0, all.size() * sizeof(float));
  };
  const float one = 1;
  const float zero = 0;
  make(scales_, kScale, 1, &one);
  make(added_, kAdd, n_embd_, neutral.data());
  make(relative_, kRelative, n_embd_, neutral.data());
  make(directions_, kAlong, n_embd_, neutral.data());
  for (Table& factor : factors_) make(factor, kAlong, 1, &zero);
}

int LayerEdits::nodes(unsigned parts) {
  constexpr std::pair<Part, int> kNodes[] = {{kLengths, 8},  {kScale, 2},  {kAdd, 1},
                                             {kRelative, 5}, {kAlong, 26}, {kChanges, 6}};
  int nodes = 0;
  for (const auto& [part, count] : kNodes) nodes += (parts & part) != 0 ? count : 0;
  return nodes;
}

void LayerEdits::begin_batch() {
  for (Row& row : rows_) row.used = false;
}

int LayerEdits::find(const Edit& edit) {
  for (size_t row = 1; row < rows_.size(); ++row) {
    if (!rows_[row].edit || !rows_[row].edit->same_change(edit)) continue;
    rows_[row].used = true;
    return static_cast<int>(row);
  }
  return -1;
}

int LayerEdits::free_row() {
  int found = -1;
  for (size_t row = 1; row < rows_.size(); ++row) {
    if (rows_[row].used) continue;
    if (!rows_[row].edit) return static_cast<int>(row);
    if (found < 0) found = static_cast<int>(row);
  }
  return found;
}

int LayerEdits::write(int index, const Edit& edit) {
  Row& row = rows_[static_cast<size_t>(index)];
  row = Row();
  row.edit = edit;
  row.used = true;
  const auto width = static_cast<size_t>(n_embd_);
  const bool affine = edit.kind == EditKind::kAffine;
  const float scale = affine ? edit.scale : 1.0F;
  row.measured = scale != 1.0F || !affine;
  std::vector<float> added(width, -0.0F);
  std::vector<float> relative(width, -0.0F);
  std::vector<float> direction(width, -0.0F);
  std::array<float, kFactors> factors{};
  if (edit.direction && edit.strength != 0.0F) {
    const std::vector<float>& values = edit.direction->values;
    const double length = edit.direction->length;
    if (!affine) {
      for (size_t i = 0; i < width; ++i) direction[i] = static_cast<float>(values[i] / length);
      const bool clamps = edit.kind == EditKind::kClamp;
      const bool of_length = clamps && edit.unit == StrengthUnit::kRowNorm;
      const double one = edit.unit == StrengthUnit::kVector ? length : 1;
      factors[kStrength] = edit.strength;
      if (clamps) {
        factors[of_length ? kLeastOfLength : kLeast] = limited(edit.least * one);
        factors[of_length ? kMostOfLength : kMost] = limited(edit.most * one);
      }
    } else if (is_relative(edit)) {
      const double factor = edit.strength / length;
      for (size_t i = 0; i < width; ++i) relative[i] = static_cast<float>(factor * values[i]);
    } else {
      const double one = edit.unit == StrengthUnit::kVector ? length : 1;
      const auto factor = static_cast<float>(edit.strength * (one / length));
      for (size_t i = 0; i < width; ++i) added[i] = factor * values[i];
    }
  }
  row.added = row_length(added.data(), width);
  row.relative = row_length(relative.data(), width);
  const auto set = [index](Table& table, const float* values) {
    if (table) table.set_row(index, values);
  };
  set(scales_, &scale);
  set(added_, added.data());
  set(relative_, relative.data());
  set(directions_, direction.data());
  for (size_t i = 0; i < kFactors; ++i) set(factors_[i], &factors[i]);
  return index;
}

std::optional<double> LayerEdits::change_length(int row, double length) const {
  if (row == 0) return 0;
  const Row& found = rows_[static_cast<size_t>(row)];
  if (found.measured) return std::nullopt;
  return found.added + found.relative * length;
}

ggml_tensor* LayerEdits::extend(ggml_context* ctx, ggml_tensor* output, ggml_tensor* ids,
                                ggml_tensor** lengths, ggml_tensor** changes) const {
  const auto armed = [this](unsigned part) { return (parts_ & part) != 0; };
  const auto squared = [ctx](ggml_tensor* t) { return ggml_sum_rows(ctx, ggml_sqr(ctx, t)); };
  *lengths = squared(output);
  *changes = nullptr;
  ggml_tensor* const length =
      armed(kRelative | kAlong) ? ggml_sqrt(ctx, ggml_clamp(ctx, *lengths, 0, kLargest)) : nullptr;
  ggml_tensor* h = output;
  if (armed(kScale)) h = ggml_mul(ctx, h, ggml_get_rows(ctx, scales_.tensor(), ids));
  if (armed(kAdd)) h = ggml_add_id(ctx, h, added_.tensor(), ids);
  if (armed(kRelative))
    h = ggml_add(ctx, h, ggml_mul(ctx, ggml_get_rows(ctx, relative_.tensor(), ids), length));
  if (armed(kAlong)) {
    ggml_tensor* const u = ggml_get_rows(ctx, directions_.tensor(), ids);
    const auto factor = [&](Factor which) { return ggml_get_rows(ctx, factors_[which].tensor(), ids); };
    const auto bound = [&](Factor fixed, Factor of_length) {
      return ggml_add(ctx, factor(fixed), ggml_mul(ctx, factor(of_length), length));
    };
    ggml_tensor* const projection = ggml_sum_rows(ctx, ggml_mul(ctx, output, u));
    ggml_tensor* const below = ggml_relu(ctx, ggml_sub(ctx, bound(kLeast, kLeastOfLength), projection));
    ggml_tensor* const above = ggml_relu(ctx, ggml_sub(ctx, projection, bound(kMost, kMostOfLength)));
    ggml_tensor* const change = ggml_mul(ctx, factor(kStrength), ggml_sub(ctx, below, above));
    h = ggml_add(ctx, h, ggml_mul(ctx, u, change));
  }
  if (armed(kChanges)) *changes = squared(ggml_sub(ctx, h, output));
  return h;
}

}  // namespace tapline
