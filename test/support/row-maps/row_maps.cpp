// Compares plan_micro_batches with llama.cpp's own splitting (llama_batch_allocr) on random batches:
//
//   tapline-row-maps COUNT SEED
//
// Prints one line of JSON: for each way to split, how many batches were compared, how many of them llama.cpp
// divided into several micro-batches, and for how many the two differ in any row, token, position or output.

#include <algorithm>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "capture/row_map.h"
#include "llama-batch.h"
#include "llama-vocab.h"

namespace {

using tapline::MicroBatch;
using tapline::SplitKind;

/// The same numbers from a seed everywhere, unlike the standard library's distributions.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}

  /// From `least` to `most`, both included.
  int between(int least, int most) {
    return least + static_cast<int>(engine_() % static_cast<uint32_t>(most - least + 1));
  }

 private:
  std::mt19937 engine_;
};

struct RandomBatch {
  explicit RandomBatch(Random& random) {
    std::vector<std::pair<llama_seq_id, int>> left = sequences(random);  // id, tokens still to be placed
    std::vector<llama_pos> next(LLAMA_MAX_SEQ);
    for (llama_pos& pos : next) pos = random.between(0, 100);
    const int longest_run = random.between(0, 2) == 0 ? 1 : random.between(1, 40);
    const int outputs_in_ten = random.between(0, 10);
    while (!left.empty()) {
      const auto at = static_cast<size_t>(random.between(0, static_cast<int>(left.size()) - 1));
      auto& [id, tokens] = left[at];
      for (int run = std::min(tokens, random.between(1, longest_run)); run > 0; --run, --tokens) {
        token.push_back(random.between(0, 50000));
        seq_id.push_back(id);
        pos.push_back(next[static_cast<size_t>(id)]++);
        logits.push_back(random.between(1, 10) <= outputs_in_ten ? 1 : 0);
      }
      if (tokens == 0) left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
    }
    for (llama_seq_id& id : seq_id) seq_ids.push_back(&id);
    n_seq_id.assign(token.size(), 1);
    for (size_t i = 0; i < token.size(); ++i) index.push_back(static_cast<float>(i));
    n_ubatch = static_cast<uint32_t>(random.between(1, random.between(0, 1) == 0 ? 8 : 100));
    // llama.cpp demands that a micro-batch holds more than the 1 + n_rs_seq tokens that stay together.
    if (n_ubatch > 2 && random.between(0, 1) == 1)
      n_rs_seq = static_cast<uint32_t>(random.between(1, std::min(5, static_cast<int>(n_ubatch) - 2)));
  }

  /// As the addon sees it.
  llama_batch of_tokens() {
    return {static_cast<int32_t>(token.size()),
            token.data(),
            nullptr,
            pos.data(),
            n_seq_id.data(),
            seq_ids.data(),
            logits.data()};
  }

  /// With each row's index instead of its token: so llama.cpp shows where a row of a micro-batch comes from,
  /// and needs no vocabulary.
  llama_batch of_indices() {
    llama_batch batch = of_tokens();
    batch.token = nullptr;
    batch.embd = index.data();
    return batch;
  }

  std::vector<llama_token> token;
  std::vector<float> index;
  std::vector<llama_pos> pos;
  std::vector<int32_t> n_seq_id;
  std::vector<llama_seq_id> seq_id;
  std::vector<llama_seq_id*> seq_ids;
  std::vector<int8_t> logits;
  uint32_t n_ubatch = 0;
  uint32_t n_rs_seq = 0;

 private:
  /// One to twelve sequences with their lengths: ids with or without gaps, lengths alike or not.
  static std::vector<std::pair<llama_seq_id, int>> sequences(Random& random) {
    const int most = random.between(0, 1) == 0 ? 8 : 60;
    const int common = random.between(0, 2) == 0 ? random.between(1, most) : 0;
    const int widest_step = random.between(1, 3);
    std::vector<std::pair<llama_seq_id, int>> all;
    llama_seq_id id = random.between(0, 3);
    for (int left = random.between(1, 12); left > 0; --left) {
      all.emplace_back(id, common > 0 ? common : random.between(1, most));
      id += random.between(1, widest_step);
    }
    return all;
  }
};

bool same(const MicroBatch& one, const MicroBatch& other) {
  return one.rows == other.rows && one.outputs == other.outputs && one.tokens == other.tokens &&
         one.positions == other.positions;
}

std::vector<MicroBatch> micro_batches_of_llama(RandomBatch& batch, SplitKind kind,
                                               llama_batch_allocr& allocator) {
  static const llama_vocab none;
#if TAPLINE_LLAMA_CPP >= 600
  llama_batch_ext converted(batch.token.size(), /*n_embd_inp=*/1, /*n_embd_inp_enc=*/1, LLAMA_MAX_SEQ,
                            /*mem=*/nullptr, /*n_vocab=*/0, /*n_pos_per_embd=*/1);
  llama_batch_compat::init(converted, batch.of_indices());
  const bool taken = allocator.init(converted, none, /*output_all=*/false);
#else
  const bool taken = allocator.init(batch.of_indices(), none, /*memory=*/nullptr, /*n_embd=*/1, LLAMA_MAX_SEQ,
                                    /*output_all=*/false);
#endif
  if (!taken) throw std::runtime_error("llama.cpp does not take the batch.");
  const uint32_t keep_tail = batch.n_rs_seq > 0 ? batch.n_rs_seq + 1 : 0;  // as in llama-memory-recurrent.cpp
  std::vector<MicroBatch> micros;
  while (true) {
    const llama_ubatch piece =
        kind == SplitKind::kInOrder
            ? allocator.split_simple(batch.n_ubatch)
            : allocator.split_equal(batch.n_ubatch, kind == SplitKind::kEqualAscending, keep_tail);
    if (piece.n_tokens == 0) break;
    MicroBatch& micro = micros.emplace_back();
    for (uint32_t i = 0; i < piece.n_tokens; ++i) {
      const int row = static_cast<int>(piece.embd[i]);
      micro.rows.push_back(row);
      micro.tokens.push_back(batch.token[static_cast<size_t>(row)]);
      micro.positions.push_back(piece.pos[i]);
      if (piece.output[i] != 0) micro.outputs.push_back(row);
    }
  }
  if (allocator.get_n_used() != allocator.get_n_tokens())
    throw std::runtime_error("llama.cpp did not use up the batch.");
  return micros;
}

void compare(const char* name, SplitKind kind, int count, Random& random) {
  llama_batch_allocr allocator(/*n_pos_per_embd=*/1);
  int divided = 0;
  int differing = 0;
  for (int i = 0; i < count; ++i) {
    RandomBatch batch(random);
    const std::vector<MicroBatch> real = micro_batches_of_llama(batch, kind, allocator);
    if (real.size() > 1) ++divided;
    const std::vector<MicroBatch> planned =
        tapline::plan_micro_batches(batch.of_tokens(), kind, batch.n_ubatch, batch.n_rs_seq);
    if (!std::equal(real.begin(), real.end(), planned.begin(), planned.end(), same)) ++differing;
  }
  std::cout << "\"" << name << "\":{\"compared\":" << count << ",\"divided\":" << divided
            << ",\"differing\":" << differing << "}";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 3) throw std::invalid_argument("Usage: tapline-row-maps COUNT SEED");
    const int count = std::stoi(argv[1]);
    Random random(static_cast<uint32_t>(std::stoul(argv[2])));
    std::cout << "{";
    compare("inOrder", SplitKind::kInOrder, count, random);
    std::cout << ",";
    compare("equal", SplitKind::kEqual, count, random);
    std::cout << ",";
    compare("equalAscending", SplitKind::kEqualAscending, count, random);
    std::cout << "}" << std::endl;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
  return 0;
}
