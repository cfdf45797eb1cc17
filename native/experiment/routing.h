#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "experiment/passes.h"

namespace tapline {

/// Which experts one layer's router chose for each token, and with what weights their outputs are added.
struct LayerRouting {
  int layer = 0;
  int experts = 0;              // to choose from
  int used = 0;                 // for a token
  std::vector<int32_t> chosen;  // [tokens, used], the best first
  std::vector<float> weights;   // [tokens, used], as the graph multiplies by them
};

/// Takes the routing of some layers out of a pass, and checks that it can be one: of each token as many
/// experts as were said, all of them there and none twice, with finite weights.
class RoutingReader {
 public:
  /// Throws where a layer has no router.
  RoutingReader(Passes& passes, const std::vector<int>& layers, size_t tokens);

  /// Rows of Point::kRouter. A token's row that comes again, from a second pass, changes nothing. Throws
  /// kCompute, kInternal.
  void take(const TappedRows& tapped);
  std::vector<LayerRouting> result() { return std::move(layers_); }

 private:
  void check(const LayerRouting& layer, size_t token) const;

  std::vector<LayerRouting> layers_;
  size_t first_;  // token of the text
};

}  // namespace tapline
