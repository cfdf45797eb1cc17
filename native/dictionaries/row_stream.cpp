#include "dictionaries/row_stream.h"

#include <algorithm>
#include <bitset>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace tapline::dictionaries {

namespace {

constexpr size_t kBlockRows = 64;
constexpr size_t kGroupBlocks = 1024;

constexpr uint64_t kOrderStream = 3;
constexpr uint64_t kGroupStream = 4;
constexpr uint64_t kHeldOutStream = 5;

size_t count_of(uint64_t bits) {
  return std::bitset<64>(bits).count();
}

}  // namespace

RowStream::RowStream(std::vector<RowPiece> pieces, int hidden, uint64_t seed) : hidden_(hidden), seed_(seed) {
  for (RowPiece& piece : pieces) {
    const size_t rows = piece.uses.size();
    if (rows == 0) continue;
    const auto index = static_cast<uint32_t>(pieces_.size());
    auto file = std::make_unique<MappedFile>(piece.path);
    const auto width = static_cast<size_t>(hidden);
    const StoredMatrix matrix(*file, piece.offset, piece.type, rows, width);
    std::optional<StoredMatrix> targets;
    if (piece.target_offset) targets.emplace(*file, *piece.target_offset, piece.type, rows, width);
    for (size_t first = 0; first < rows; first += kBlockRows) {
      Block block{index, first, 0, 0};
      for (size_t i = first; i < std::min(rows, first + kBlockRows); ++i) {
        const uint64_t bit = uint64_t{1} << (i - first);
        if (piece.uses[i] == static_cast<uint8_t>(RowUse::kTrain)) block.train |= bit;
        if (piece.uses[i] == static_cast<uint8_t>(RowUse::kHeldOut)) block.held_out |= bit;
      }
      train_rows_ += count_of(block.train);
      held_out_rows_ += count_of(block.held_out);
      blocks_.push_back(block);
    }
    pieces_.push_back(
        {std::move(piece.path), std::move(file), matrix, piece.offset, targets, piece.target_offset});
  }
  if (train_rows_ == 0 || held_out_rows_ == 0)
    throw_error(ErrorCode::kInvalidArgument, "A dictionary needs training rows and held-out rows, got ",
                train_rows_, " and ", held_out_rows_, ".");
}

std::vector<uint32_t> RowStream::shuffled_blocks(Random random) const {
  std::vector<uint32_t> order(blocks_.size());
  std::iota(order.begin(), order.end(), 0U);
  random.shuffle(order);
  return order;
}

void RowStream::open_epoch(uint64_t epoch) {
  epoch_ = epoch;
  order_ = shuffled_blocks(Random(seed_ + epoch * 0x9e3779b97f4a7c15U, kOrderStream));
  group_starts_.assign(1, 0);
  for (size_t first = 0; first < order_.size(); first += kGroupBlocks) {
    uint64_t rows = 0;
    for (size_t i = first; i < std::min(order_.size(), first + kGroupBlocks); ++i)
      rows += count_of(blocks_[order_[i]].train);
    group_starts_.push_back(group_starts_.back() + rows);
  }
  group_ = group_starts_.size();  // none is open
}

void RowStream::open_group(size_t group) {
  group_ = group;
  rows_.clear();
  const size_t first = group * kGroupBlocks;
  for (size_t i = first; i < std::min(order_.size(), first + kGroupBlocks); ++i) {
    const Block& block = blocks_[order_[i]];
    for (uint64_t row = 0; row < kBlockRows; ++row) {
      if ((block.train >> row & 1U) != 0) rows_.push_back({block.piece, block.first + row});
    }
  }
  Random random(seed_ + (epoch_ * 0x9e3779b97f4a7c15U ^ (group + 1) * 0xbf58476d1ce4e5b9U), kGroupStream);
  random.shuffle(rows_);
  expect_group(group + 1);
}

// Asks the system to read the rows of a group while the previous one is used.
void RowStream::expect_group(size_t group) const {
  const size_t first = group * kGroupBlocks;
  for (size_t i = first; i < std::min(order_.size(), first + kGroupBlocks); ++i) {
    const Block& block = blocks_[order_[i]];
    const Piece& piece = pieces_[block.piece];
    const size_t bytes = piece.rows.row_bytes();
    const auto first_byte = static_cast<double>(block.first * bytes);
    piece.file->expect(piece.offset + first_byte, kBlockRows * bytes);
    if (piece.target_offset) piece.file->expect(*piece.target_offset + first_byte, kBlockRows * bytes);
  }
}

std::vector<RowPlace> RowStream::train(uint64_t from, size_t count) {
  std::vector<RowPlace> found;
  found.reserve(count);
  while (found.size() < count) {
    const uint64_t at = from + found.size();
    if (at / train_rows_ != epoch_) open_epoch(at / train_rows_);
    const uint64_t within = at % train_rows_;
    const auto next = std::upper_bound(group_starts_.begin(), group_starts_.end(), within);
    const auto group = static_cast<size_t>(next - group_starts_.begin()) - 1;
    if (group != group_) open_group(group);
    const size_t skipped = static_cast<size_t>(within - group_starts_[group]);
    const size_t taken = std::min(count - found.size(), rows_.size() - skipped);
    const auto begin = rows_.begin() + static_cast<std::ptrdiff_t>(skipped);
    found.insert(found.end(), begin, begin + static_cast<std::ptrdiff_t>(taken));
  }
  return found;
}

std::vector<RowPlace> RowStream::held_out(size_t count) const {
  // Blocks in shuffled order: the rows of one text are not a sample of all.
  std::vector<RowPlace> found;
  for (const uint32_t index : shuffled_blocks(Random(seed_, kHeldOutStream))) {
    const Block& block = blocks_[index];
    for (uint64_t row = 0; row < kBlockRows && found.size() < count; ++row) {
      if ((block.held_out >> row & 1U) != 0) found.push_back({block.piece, block.first + row});
    }
    if (found.size() == count) break;
  }
  return found;
}

void RowStream::copy(const StoredMatrix& matrix, uint64_t row, float* to) const {
  const auto width = static_cast<size_t>(hidden_);
  const float* values = matrix.read(static_cast<size_t>(row), 0, width, to);
  if (values != to) std::copy_n(values, width, to);
}

void RowStream::read(const RowPlace& place, float* to) const {
  copy(pieces_[place.piece].rows, place.row, to);
}

void RowStream::read_target(const RowPlace& place, float* to) const {
  const Piece& piece = pieces_[place.piece];
  copy(piece.targets ? *piece.targets : piece.rows, place.row, to);
}

std::string RowStream::name_of(const RowPlace& place) const {
  return "row " + std::to_string(place.row) + " of " + pieces_[place.piece].path;
}

}  // namespace tapline::dictionaries
