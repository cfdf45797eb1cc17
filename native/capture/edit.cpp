#include "capture/edit.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/error.h"

namespace tapline {

namespace {

constexpr double kShortest = 1e-8;

// Independent sums: with a single one a capture of the embedded model spends a hundredth of its time on
// lengths.
constexpr size_t kSums = 8;

/// The sum over i of term(i).
template <class Term>
double sum_of(size_t n, const Term& term) {
  double sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (size_t k = 0; k < kSums; ++k) sums[k] += term(i + k);
  }
  double sum = 0;
  for (const double part : sums) sum += part;
  for (; i < n; ++i) sum += term(i);
  return sum;
}

}  // namespace

double row_length(const float* row, size_t n) {
  return std::sqrt(sum_of(n, [row](size_t i) { return double(row[i]) * row[i]; }));
}

Direction::Direction(std::vector<float> vector)
    : values(std::move(vector)), length(std::max(row_length(values.data(), values.size()), kShortest)) {}

bool Edit::neutral() const {
  if (kind != EditKind::kAffine) return strength == 0.0F;
  if (scale != 1.0F) return false;
  return strength == 0.0F || !direction ||
         std::all_of(direction->values.begin(), direction->values.end(), [](float v) { return v == 0.0F; });
}

/// The factor of the direction that is added to `row`.
double Edit::coefficient(const float* row, size_t n_embd, double row_length, const float* gauged) const {
  if (!direction || strength == 0.0F) return 0;
  if (kind == EditKind::kHold) {
    const auto change = [this](double value) { return std::max(std::min(value, most), least) - value; };
    const Reading read = (*gauge)(gauged == nullptr ? row : gauged, change);
    return strength * change(read.value) * read.unit;
  }
  const double length = direction->length;
  const double one = unit == StrengthUnit::kVector ? length : unit == StrengthUnit::kRowNorm ? row_length : 1;
  if (kind == EditKind::kAffine) return strength * (one / length);
  const float* values = direction->values.data();
  const double projection =
      sum_of(n_embd, [row, values](size_t i) { return double(row[i]) * values[i]; }) / length;
  double wanted = 0;
  if (kind == EditKind::kClamp) {
    wanted = projection;
    if (wanted > most * one) wanted = most * one;
    if (wanted < least * one) wanted = least * one;
  }
  return strength * (wanted - projection) / length;
}

RowChange Edit::apply(float* row, size_t n_embd, const float* gauged) const {
  RowChange change;
  change.row_length = row_length(row, n_embd);
  const auto factor = static_cast<float>(coefficient(row, n_embd, change.row_length, gauged));
  if (factor == 0.0F && scale == 1.0F) return change;
  const float* values = factor == 0.0F ? nullptr : direction->values.data();
  const float keep = kind == EditKind::kAffine ? scale : 1.0F;
  change.change_length = std::sqrt(sum_of(n_embd, [&](size_t i) {
    const float before = row[i];
    row[i] = values == nullptr ? keep * before : keep * before + factor * values[i];
    const double moved = double(row[i]) - before;
    return moved * moved;
  }));
  return change;
}

void check_vector(const Edit& edit, size_t width) {
  if (!edit.direction) {
    if (edit.kind == EditKind::kAffine) return;
    throw Error(ErrorCode::kInvalidArgument, "An edit of a projection needs a vector.");
  }
  if (edit.direction->values.size() == width) return;
  throw_error(ErrorCode::kInvalidArgument, "An edit's vector has ", edit.direction->values.size(),
              " values; ", (edit.point == Point::kHeadOut ? "there are " : "the hidden size is "), width,
              ".");
}

RowChange Edit::apply_to(float* row, size_t row_width, int row_heads, std::vector<float>& scratch,
                         const float* gauged) const {
  if (heads.empty()) return apply(row, row_width, gauged);
  if (heads.size() == 1) {
    const auto [begin, length] = part_of_row(heads.front(), row_width, row_heads);
    return apply(row + begin, length);
  }
  scratch.clear();
  for (const int head : heads) {
    const auto [begin, length] = part_of_row(head, row_width, row_heads);
    scratch.insert(scratch.end(), row + begin, row + begin + length);
  }
  const RowChange change = apply(scratch.data(), scratch.size());
  const float* changed = scratch.data();
  for (const int head : heads) {
    const auto [begin, length] = part_of_row(head, row_width, row_heads);
    std::copy(changed, changed + length, row + begin);
    changed += length;
  }
  return change;
}

bool Edit::same_change(const Edit& other) const {
  const bool same_direction = direction == other.direction ||
                              (direction && other.direction && direction->values == other.direction->values);
  return kind == other.kind && scale == other.scale && strength == other.strength && unit == other.unit &&
         same_direction && gauge == other.gauge && gauge_at == other.gauge_at && least == other.least &&
         most == other.most;
}

bool Edit::operator==(const Edit& other) const {
  return place() == other.place() && heads == other.heads && positions == other.positions &&
         same_change(other);
}

}  // namespace tapline
