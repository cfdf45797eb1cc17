#include "experiment/routing.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "experiment/checks.h"

namespace tapline {

RoutingReader::RoutingReader(Passes& passes, const std::vector<int>& layers, size_t tokens)
    : first_(passes.sequence().n_past) {
  check_layers(passes, layers);
  for (const int layer : layers) {
    const Site& site = check_place(passes, {layer, Point::kRouter});
    const size_t count = tokens * static_cast<size_t>(site.width);
    layers_.push_back(
        {layer, site.experts, site.width, std::vector<int32_t>(count, -1), std::vector<float>(count)});
  }
}

void RoutingReader::take(const TappedRows& tapped) {
  const auto found = std::find_if(layers_.begin(), layers_.end(),
                                  [&](const LayerRouting& layer) { return layer.layer == tapped.layer; });
  if (found == layers_.end()) return;
  const auto used = static_cast<size_t>(found->used);
  for (size_t row = 0; row < tapped.count; ++row) {
    const auto token = static_cast<size_t>((*tapped.indices)[row]);
    if (found->chosen[token * used] >= 0) continue;  // the answering row is the first pass's
    std::copy_n(tapped.experts + row * used, used, found->chosen.data() + token * used);
    std::copy_n(tapped.values + row * used, used, found->weights.data() + token * used);
    check(*found, token);
  }
}

void RoutingReader::check(const LayerRouting& layer, size_t token) const {
  const auto used = static_cast<size_t>(layer.used);
  const int32_t* chosen = layer.chosen.data() + token * used;
  const std::string where =
      "block " + std::to_string(layer.layer) + " at token " + std::to_string(first_ + token);
  for (size_t i = 0; i < used; ++i) {
    if (!std::isfinite(layer.weights[token * used + i]))
      throw_error(ErrorCode::kCompute, "The weight of an expert of ", where,
                  " is not finite; the model file may be damaged.");
    const bool there = chosen[i] >= 0 && chosen[i] < layer.experts;
    if (there && std::count(chosen, chosen + used, chosen[i]) == 1) continue;
    throw_error(ErrorCode::kInternal, "The router of ", where, " chose expert ", chosen[i],
                (there ? " twice." : " of " + std::to_string(layer.experts) + "."));
  }
}

}  // namespace tapline
