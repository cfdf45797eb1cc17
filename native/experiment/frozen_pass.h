#pragma once

#include <string>
#include <vector>

#include "capture/logit_direction.h"
#include "experiment/passes.h"
#include "graph/frozen_blocks.h"
#include "model/weight_file.h"

namespace tapline {

// What experiments share that fix a pass's attention weights and norms, and read its linear paths.

/// Throws unless the paths through attention and, with `mlps`, through dense MLPs are known in every block.
void check_linear_paths(const Passes& passes, bool mlps);
/// Throws unless the text fits one pass. `what` begins the sentence.
void check_one_pass(const Passes& passes, const std::vector<llama_token>& tokens, const char* what);

/// Throws unless a target's position is one of a text's tokens.
void check_position(int position, size_t tokens);
/// Throws unless a logit's token and, if it is not negative, the one to subtract are tokens of the model.
void check_logit(const Passes& passes, llama_token token, llama_token minus);

/// The rows of every block in a pass over a text.
struct FrozenRows {
  std::vector<BlockRows> blocks;
  std::vector<float> last;  // [tokens, hidden]: the last block's output
};

/// Computes a text; `written` reads only what heads and MLPs write. Throws kCompute if a number is not
/// finite. `ffn_inputs` are the layers whose ffn_in is also read, ascending.
FrozenRows frozen_rows(Passes& passes, const std::vector<llama_token>& tokens, bool written,
                       const CancelToken& cancel, const std::vector<int>& ffn_inputs = {});
/// `weights` and `rows` must outlive the result.
FrozenBlocks frozen_blocks(const Passes& passes, const WeightFile& weights, const FrozenRows& rows);

/// How far a pass may be from its linear paths, and a sum of parts from its value; both relative L2. A pass
/// rounds where it has 16 bits, and products with quantised weights also round their inputs; a wrong path
/// would be about 1 away.
struct FrozenBounds {
  double apart = 0;
  double residual = 0;
};
FrozenBounds frozen_bounds(const Passes& passes, bool mlps);
/// Throws kCompute and names the block that is farther from its linear path. `half`: attention or MLP.
void check_apart(const char* half, const std::vector<double>& apart, double bound);
/// A number with two digits, for a sentence.
std::string two_digits(double value);

/// Logits as linear functions of the last block's output, before a soft cap, with the final norm's scale
/// fixed.
class LogitFunctions {
 public:
  LogitFunctions(const Passes& passes, const WeightFile& weights, const CancelToken& cancel)
      : passes_(passes), weights_(weights), cancel_(cancel) {}

  /// The logit of `token` at one position of the last block's output, [tokens, hidden], less that of `minus`,
  /// or with -1 the mean of all.
  LogitDirection of(llama_token token, llama_token minus, const std::vector<float>& last, int position);

 private:
  const Passes& passes_;
  const WeightFile& weights_;
  const CancelToken& cancel_;
  std::vector<double> mean_;
};

}  // namespace tapline
