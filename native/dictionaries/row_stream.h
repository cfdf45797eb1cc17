#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "dictionaries/row_source.h"
#include "dictionaries/stored_matrix.h"
#include "numbers/random.h"

namespace tapline::dictionaries {

enum class RowUse : uint8_t { kNone = 0, kTrain = 1, kHeldOut = 2 };

/// Rows that lie one after another in a file.
struct RowPiece {
  std::string path;
  double offset = 0;  ///< of the first row, in bytes
  /// Of the first row's target, if they have targets: as many rows of the same type in the same file.
  std::optional<double> target_offset;
  NumberType type = NumberType::kF32;
  std::vector<uint8_t> uses;  ///< a RowUse for each row
};

/// Rows in mapped files, in a shuffled, reproducible order.
///
/// Each epoch shuffles blocks of 64 adjacent rows, and then all rows within each 1024 blocks: as good as any
/// order, unless a text has thousands of tokens, but only these blocks must be in memory. Of a file that may
/// be a terabyte, memory has two bits per row.
class RowStream final : public RowSource {
 public:
  /// Throws kInvalidArgument if the rows do not lie in their file.
  RowStream(std::vector<RowPiece> pieces, int hidden, uint64_t seed);

  int hidden() const override { return hidden_; }
  uint64_t train_rows() const override { return train_rows_; }
  uint64_t held_out_rows() const override { return held_out_rows_; }
  std::vector<RowPlace> train(uint64_t from, size_t count) override;
  std::vector<RowPlace> held_out(size_t count) const override;
  void read(const RowPlace& place, float* to) const override;
  void read_target(const RowPlace& place, float* to) const override;
  std::string name_of(const RowPlace& place) const override;

 private:
  struct Piece {
    std::string path;
    std::unique_ptr<MappedFile> file;
    StoredMatrix rows;
    double offset;
    std::optional<StoredMatrix> targets;
    std::optional<double> target_offset;
  };
  struct Block {
    uint32_t piece;
    uint64_t first;
    uint64_t train, held_out;  ///< a bit for each of 64 rows
  };

  std::vector<uint32_t> shuffled_blocks(Random random) const;
  void copy(const StoredMatrix& matrix, uint64_t row, float* to) const;
  void open_epoch(uint64_t epoch);
  void open_group(size_t group);
  void expect_group(size_t group) const;

  int hidden_;
  uint64_t seed_;
  std::vector<Piece> pieces_;
  std::vector<Block> blocks_;
  uint64_t train_rows_ = 0, held_out_rows_ = 0;

  // The current position: blocks of the epoch in order, the number of rows before each group of them, the
  // rows of one group.
  uint64_t epoch_ = ~uint64_t{0};
  std::vector<uint32_t> order_;
  std::vector<uint64_t> group_starts_;
  size_t group_ = 0;
  std::vector<RowPlace> rows_;
};

}  // namespace tapline::dictionaries
