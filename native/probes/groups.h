#pragma once

#include <cstdint>
#include <vector>

#include "numbers/random.h"

namespace tapline::probes {

/// Groups of similar examples, such as the rows of one text: they share a label and a side of the split, and
/// permutations are of groups.
class Groups {
 public:
  /// `group_of`: a number for each example; empty: every example is a group. Throws kInvalidArgument if a
  /// group has two labels or is on both sides.
  Groups(const std::vector<int32_t>& group_of, const std::vector<uint8_t>& train,
         const std::vector<uint8_t>& labels);

  /// Whether any were given.
  bool given() const { return given_; }
  /// Labels of the training groups and of the held-out ones, in the order of their first examples.
  const std::vector<uint8_t>& train_labels() const { return train_.labels; }
  const std::vector<uint8_t>& test_labels() const { return test_.labels; }

  /// Labels of the training examples after a permutation among their groups.
  std::vector<uint8_t> permuted(Random& random) const;

  /// The mean probability of label 1 in each held-out group, from the decision values of held-out examples.
  std::vector<double> mean_scores(const std::vector<double>& decisions) const;

 private:
  struct Side {
    std::vector<size_t> member_of;  ///< of each example of this side, its group among this side's
    std::vector<uint8_t> labels;    ///< of each group
  };

  bool given_;
  Side train_, test_;
};

}  // namespace tapline::probes
