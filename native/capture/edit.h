#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "capture/place.h"
#include "capture/positions.h"

namespace tapline {

/// A vector in the space of a model's block outputs, shared by its edits.
struct Direction {
  explicit Direction(std::vector<float> vector);

  std::vector<float> values;  // [n_embd]
  double length;              // L2, at least 1e-8, because it is a divisor
};

/// The effect of an edit of strength s on a row h of a block output, with direction v and u = v / |v|.
enum class EditKind : uint8_t {
  /// h' = scale * h + s * (u, v or |h| u, by the unit). Scaling, ablation, patching and steering are this.
  kAffine,
  /// h' = h - s (h.u) u: at s = 1 the component along the direction is removed.
  kProjectOut,
  /// h' = h + s (clip(h.u, least, most) - h.u) u: at s = 1 the projection is clamped between two bounds.
  kClamp,
  /// h' = h + s (clip(f, least, most) - f) c v, with value f and unit c of a reading: at s = 1 the value is
  /// clamped.
  kHold
};

/// A value that is read from a row, and the multiple of an edit's direction that one unit of it corresponds
/// to.
struct Reading {
  double value = 0;
  double unit = 1;
};
/// `change(value)` is the change that an edit would make to a value: a gauge need not distinguish values with
/// the same change.
using Gauge = std::function<Reading(const float* row, const std::function<double(double value)>& change)>;

/// The unit of an affine edit's strength and of a clamp's bounds.
enum class StrengthUnit : uint8_t {
  kUnit,    // the unit vector u: an absolute length
  kVector,  // the vector as it is
  kRowNorm  // the row's length |h|, so that strengths are comparable between models
};

/// The length of one row and of an edit's change to it; both L2.
struct RowChange {
  double row_length = 0;
  double change_length = 0;
};

/// The sums of these lengths over all rows of an edit.
struct EditEffect {
  int64_t rows = 0;
  double row_length = 0;
  double change_length = 0;

  void add(const RowChange& change) {
    ++rows;
    row_length += change.row_length;
    change_length += change.change_length;
  }
  void add(const EditEffect& other) {
    rows += other.rows;
    row_length += other.row_length;
    change_length += other.change_length;
  }
};

/// The offset and length of one head's part of a row of `heads` concatenated heads; the whole row for a
/// negative head.
inline std::pair<size_t, size_t> part_of_row(int head, size_t width, int heads) {
  if (head < 0 || heads <= 0) return {0, width};
  const size_t length = width / static_cast<size_t>(heads);
  return {static_cast<size_t>(head) * length, length};
}

/// One change at a point of a block: plain data in the same form from the binding to the tap.
struct Edit {
  int layer = 0;
  Point point = Point::kBlockOut;
  std::vector<int> heads;  // for head_out: the heads to change, concatenated; empty: the whole row
  Positions positions;
  EditKind kind = EditKind::kAffine;
  float scale = 1.0F;  // affine only
  float strength = 1.0F;
  StrengthUnit unit = StrengthUnit::kVector;
  std::shared_ptr<const Direction> direction;  // null: none, in affine edits only
  std::shared_ptr<const Gauge> gauge;          // of a hold
  std::optional<Point> gauge_at;               // an earlier point of the block that it reads; none: this one
  double least = 0;                            // bounds: of a clamp in `unit`, of a hold in the gauge's value
  double most = 0;

  Place place() const { return {layer, point}; }
  /// The number of a row's values that it changes.
  size_t width_of(size_t row_width, int row_heads) const {
    return heads.empty() ? row_width : heads.size() * part_of_row(heads.front(), row_width, row_heads).second;
  }
  /// Whether it leaves every row unchanged, to the bit.
  bool neutral() const;
  /// Changes `row`, [n_embd]. If the change is zero, no value is written, so that -0 stays -0. `gauged` is
  /// the token's row at `gauge_at`, if any.
  RowChange apply(float* row, size_t n_embd, const float* gauged = nullptr) const;
  /// The same for its heads' parts of a row of `row_heads` heads, which count as one vector. `scratch` is
  /// reused between rows.
  RowChange apply_to(float* row, size_t row_width, int row_heads, std::vector<float>& scratch,
                     const float* gauged = nullptr) const;
  /// Whether both change every row in the same way, wherever they are applied.
  bool same_change(const Edit& other) const;
  /// Whether both have the same effect on every row of every sequence.
  bool operator==(const Edit& other) const;

 private:
  double coefficient(const float* row, size_t n_embd, double row_length, const float* gauged) const;
};

/// Edits of one sequence, in the order of application: each operates on the result of the earlier ones.
using EditPlan = std::vector<Edit>;

/// Throws kInvalidArgument if an edit lacks a vector that its kind needs, or its vector does not have `width`
/// values, as the part of the row that it changes.
void check_vector(const Edit& edit, size_t width);

/// L2 norm of a row.
double row_length(const float* row, size_t n);

}  // namespace tapline
