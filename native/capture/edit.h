#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "capture/place.h"
#include "capture/positions.h"

namespace tapline {

/// A vector in the space of a model's block outputs, shared by the edits that use it.
struct Direction {
  explicit Direction(std::vector<float> vector);

  std::vector<float> values;  // [n_embd]
  double length;              // L2, at least 1e-8: shorter ones are no direction to divide by
};

/// What an edit of strength s does to a row h of a block output, with v for its direction and u = v / |v|.
enum class EditKind : uint8_t {
  /// h' = scale * h + s * (u, v or |h| u, by the unit). Scaling, ablation, patching and steering are this.
  kAffine,
  /// h' = h - s (h.u) u: at s = 1 the component along the direction is gone.
  kProjectOut,
  /// h' = h + s (clip(h.u, least, most) - h.u) u: at s = 1 the projection is held between two bounds.
  kClamp,
  /// h' = h + s (clip(f, least, most) - f) c v, with a reading's f and c: at s = 1 what is read is held.
  kHold
};

/// What is read of a row, and how much of an edit's direction one unit of it stands for.
struct Reading {
  double value = 0;
  double unit = 1;
};
/// `change(value)` is how far an edit would move a value that is read: where two values come to the same, a
/// gauge need not find out which of them it is.
using Gauge = std::function<Reading(const float* row, const std::function<double(double value)>& change)>;

/// What one unit of an affine edit's strength is, and of a clamp's bounds.
enum class StrengthUnit : uint8_t {
  kUnit,    // the unit vector u: an absolute length
  kVector,  // the vector as it is
  kRowNorm  // the row's own length |h|, so that a strength means the same in every model
};

/// How long one row was, and how far an edit moved it; both L2.
struct RowChange {
  double row_length = 0;
  double change_length = 0;
};

/// What an edit did to all the rows that it met: sums of lengths.
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

/// Of a row of `heads` heads side by side, the numbers of one: where they begin, and how many. All of them
/// where no head is named.
inline std::pair<size_t, size_t> part_of_row(int head, size_t width, int heads) {
  if (head < 0 || heads <= 0) return {0, width};
  const size_t length = width / static_cast<size_t>(heads);
  return {static_cast<size_t>(head) * length, length};
}

/// One change of a block output, or of another point of a block: plain data, and the one form that an edit
/// has from the binding to the tap.
struct Edit {
  int layer = 0;
  Point point = Point::kBlockOut;
  std::vector<int> heads;  // of what heads read, those that are changed, side by side; none: the whole row
  Positions positions;
  EditKind kind = EditKind::kAffine;
  float scale = 1.0F;  // affine only
  float strength = 1.0F;
  StrengthUnit unit = StrengthUnit::kVector;
  std::shared_ptr<const Direction> direction;  // null: none, in affine edits only
  std::shared_ptr<const Gauge> gauge;          // of a hold
  double least = 0;                            // bounds: of a clamp in `unit`, of a hold in what is read
  double most = 0;

  Place place() const { return {layer, point}; }
  /// How many of a row's numbers it changes.
  size_t width_of(size_t row_width, int row_heads) const {
    return heads.empty() ? row_width : heads.size() * part_of_row(heads.front(), row_width, row_heads).second;
  }
  /// Whether it leaves every row as it is, to the bit.
  bool neutral() const;
  /// Changes `row`, [n_embd]. Where the change is zero no value is written, so that -0 stays -0.
  RowChange apply(float* row, size_t n_embd) const;
  /// The same to its heads' parts of a row of `row_heads` heads, which count as one vector: the lengths are
  /// theirs together. `scratch` is reused between rows.
  RowChange apply_to(float* row, size_t row_width, int row_heads, std::vector<float>& scratch) const;
  /// Whether both do the same to every row of every sequence.
  bool operator==(const Edit& other) const;

 private:
  double coefficient(const float* row, size_t n_embd, double row_length) const;
};

/// Edits of one sequence, in the order in which they are applied: several at one row follow each other, and
/// each sees what the earlier ones left.
using EditPlan = std::vector<Edit>;

/// Throws kInvalidArgument where an edit lacks the vector that its kind needs, or has one that is not `width`
/// long: the width of what it changes.
void check_vector(const Edit& edit, size_t width);

/// L2 norm of a row.
double row_length(const float* row, size_t n);

}  // namespace tapline
