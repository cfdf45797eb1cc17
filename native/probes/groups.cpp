#include "probes/groups.h"

#include <string>
#include <unordered_map>

#include "base/error.h"
#include "probes/logistic_regression.h"

namespace tapline::probes {

Groups::Groups(const std::vector<int32_t>& group_of, const std::vector<uint8_t>& train,
               const std::vector<uint8_t>& labels)
    : given_(!group_of.empty()) {
  if (given_ && group_of.size() != train.size())
    throw_error(ErrorCode::kInvalidArgument, group_of.size(), " groups were given for ", train.size(),
                " examples.");
  struct Known {
    size_t number;
    uint8_t train;
  };
  std::unordered_map<int32_t, Known> known;
  for (size_t i = 0; i < train.size(); ++i) {
    Side& side = train[i] != 0 ? train_ : test_;
    const int32_t name = given_ ? group_of[i] : static_cast<int32_t>(i);
    const auto [found, fresh] = known.try_emplace(name, Known{side.labels.size(), train[i]});
    if (fresh) side.labels.push_back(labels[i]);
    if (found->second.train != train[i])
      throw_error(ErrorCode::kInvalidArgument, "Group ", name, " has examples on both sides of the split.");
    if (side.labels[found->second.number] != labels[i])
      throw_error(ErrorCode::kInvalidArgument, "Group ", name, " has examples of both labels.");
    side.member_of.push_back(found->second.number);
  }
}

std::vector<uint8_t> Groups::permuted(Random& random) const {
  std::vector<uint8_t> of_groups = train_.labels;
  random.shuffle(of_groups);
  std::vector<uint8_t> labels;
  labels.reserve(train_.member_of.size());
  for (const size_t group : train_.member_of) labels.push_back(of_groups[group]);
  return labels;
}

std::vector<double> Groups::mean_scores(const std::vector<double>& decisions) const {
  std::vector<double> sums(test_.labels.size(), 0.0);
  std::vector<double> counts(test_.labels.size(), 0.0);
  for (size_t i = 0; i < decisions.size(); ++i) {
    sums[test_.member_of[i]] += sigmoid(decisions[i]);
    counts[test_.member_of[i]] += 1;
  }
  for (size_t group = 0; group < sums.size(); ++group) sums[group] /= counts[group];
  return sums;
}

}  // namespace tapline::probes
