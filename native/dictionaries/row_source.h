#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tapline::dictionaries {

/// One row of a source: which piece, and which of its rows.
struct RowPlace {
  uint32_t piece = 0;
  uint64_t row = 0;

  bool operator==(const RowPlace& other) const { return piece == other.piece && row == other.row; }
};

/// Training rows in an endless, reproducible order, and held-out rows.
class RowSource {
 public:
  virtual ~RowSource() = default;

  virtual int hidden() const = 0;
  virtual uint64_t train_rows() const = 0;
  virtual uint64_t held_out_rows() const = 0;

  /// Training rows [from, from + count) of the order.
  virtual std::vector<RowPlace> train(uint64_t from, size_t count) = 0;

  /// The first held-out rows, at most `count`.
  virtual std::vector<RowPlace> held_out(size_t count) const = 0;

  /// Copies a row, [hidden].
  virtual void read(const RowPlace& place, float* to) const = 0;

  /// Copies what is to be predicted from a row, [hidden]: by default the row itself.
  virtual void read_target(const RowPlace& place, float* to) const { read(place, to); }

  /// "row 12 of rows/shard-00000.safetensors"
  virtual std::string name_of(const RowPlace& place) const = 0;
};

}  // namespace tapline::dictionaries
