#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "capture/edit.h"
#include "experiment/passes.h"

namespace tapline {

struct ForwardSequence {
  std::vector<llama_token> tokens;
  EditPlan edits;  // the tokens are the prompt
};

enum class ForwardLogits { kNone, kLast, kAll, kPositions };

struct ForwardRequest {
  std::vector<ForwardSequence> sequences;
  std::vector<Place> captures;  // distinct; all points but the router
  /// The captured tokens of each sequence; negative ones count from its end. Empty: all. Attention always has
  /// all.
  std::vector<int32_t> positions;
  ForwardLogits logits = ForwardLogits::kNone;
  std::vector<int32_t> logit_positions;  // of kPositions
  bool half = false;                     // results as 16-bit floats
  size_t max_bytes = SIZE_MAX;           // of all results
};

/// Rows of one place, sequence by sequence.
struct ForwardCapture {
  Place place;
  size_t width = 0;              // numbers of a row; none for attention
  size_t heads = 0;              // of attention and head_out
  std::vector<float> values;     // [rows, width]; for attention [heads, tokens, tokens] per sequence
  std::vector<uint16_t> halves;  // instead, as 16-bit floats
};

struct ForwardResult {
  std::vector<ForwardCapture> captures;          // in the order of the request
  std::vector<float> logits;                     // [rows, n_vocab], sequence by sequence
  std::vector<uint16_t> half_logits;             // instead
  std::vector<std::vector<EditEffect>> effects;  // per sequence, one per edit
};

/// Forward passes over whole texts: rows of any points, logits of any positions, edits per text. A row that
/// is both edited and captured is returned with its edit.
///
/// Texts are packed into batches; one longer than a batch is computed in chunks. The rows of a text are those
/// of features(), and with the logits of the last token those of advance(), to the bit where the batch is the
/// same. The last block computes only rows with logits. If others are captured there, the pass computes all
/// rows, and a short one the logits (tail_pass.h), or where that does not hold, a second one the others: so
/// captures do not change the bits of logits.
class Forward {
 public:
  /// Clears the context. Throws if it cannot run the request.
  Forward(Passes& passes, ForwardRequest request);
  ~Forward();

  size_t total() const;  // sequences
  size_t done() const;
  /// Computes the next batch; call until done() is total(). Throws kCompute if a row is not finite,
  /// kCancelled.
  void step(const CancelToken& cancel);
  ForwardResult take();

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

/// All steps. `progress` counts sequences.
ForwardResult forward(Passes& passes, const ForwardRequest& request, const CancelToken& cancel,
                      const CountProgress& progress);

}  // namespace tapline
