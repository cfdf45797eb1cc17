#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiment/attention.h"
#include "experiment/forward.h"

namespace tapline {

/// Tokens [begin, end) of a sequence, which are the rows of a batch from `row` on.
struct ForwardPart {
  size_t sequence;
  size_t begin;
  size_t end;
  size_t row;
};

/// The part that a row of the batch belongs to.
const ForwardPart& part_of(const std::vector<ForwardPart>& parts, size_t batch_index);

/// A value that is infinite or not a number, and where.
struct ForwardNotFinite {
  std::string where;
};

[[noreturn]] void fail_not_finite(const std::string& what, const ForwardPart& part, size_t token);

/// The results of a forward request while its batches are computed: where each row belongs, and which are
/// still missing. Throws ForwardNotFinite.
class ForwardResults {
 public:
  /// Makes room. Throws if a position does not exist, or the results exceed the request's bytes.
  ForwardResults(const Passes& passes, const ForwardRequest& request);

  bool has_logits(size_t sequence, size_t token) const { return logit_rows_[sequence].at(token) != kNowhere; }

  /// Begins a batch: sets the number of rows that each capture takes from these parts.
  void expect(const std::vector<ForwardPart>& parts, size_t batch_rows);
  /// Whether a capture still lacks rows of the batch, at all or where its tensor is computed.
  bool lacks() const;
  bool lacks_at(Place computed) const;
  /// Copies a row of the batch into the captures of its place that lack it.
  void take(const TappedRows& tapped, size_t row, size_t index, const std::vector<ForwardPart>& parts);
  /// `of_tail`: the pass had the rows with logits only.
  void take_logits(Passes& passes, const std::vector<ForwardPart>& parts, bool of_tail);
  /// Ends a batch: `effects` by part.
  void finish(const std::vector<ForwardPart>& parts, const std::vector<std::vector<EditEffect>>& effects,
              AttentionReader& attention);

  ForwardResult release();

 private:
  static constexpr size_t kNowhere = static_cast<size_t>(-1);
  /// Of a sequence: the row in the result of its first token there, and by token the distance from there.
  struct Rows {
    size_t first = 0;
    std::vector<size_t> of_token;
    size_t at(size_t token) const { return of_token[token] == kNowhere ? kNowhere : first + of_token[token]; }
  };

  const ForwardRequest& request_;
  size_t n_vocab_;
  ForwardResult result_;
  std::vector<Rows> rows_;  // by sequence
  std::vector<Rows> logit_rows_;
  std::vector<size_t> left_;                    // of the batch: by capture, the rows still to take
  std::vector<std::vector<bool>> taken_;        // by capture and row of the batch
  std::map<int, std::ptrdiff_t> attention_at_;  // by layer: where the next text begins
};

}  // namespace tapline
