#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "ggml.h"
#include "model/dequantise.h"
#include "model/model.h"

namespace tapline {

/// A model's weights as its files have them. Loaded weights may be on a device, or rearranged for this
/// processor's products.
class WeightFile {
 public:
  /// Reads the index of each file. Throws kModelLoad if one cannot be read.
  explicit WeightFile(const Model& model);

  /// Throws kInvalidArgument if no file has it in this shape.
  const Weight& at(const ggml_tensor* weight) const;
  /// [rows, row], into `values`.
  void read(const ggml_tensor* weight, std::vector<float>& values, ThreadTeam& team) const;

 private:
  std::map<std::string, Weight> weights_;
};

}  // namespace tapline
