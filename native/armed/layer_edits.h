#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "armed/table.h"
#include "capture/edit.h"

namespace tapline {

/// The edits of one block's output inside the graph: tables of vectors and factors, with one row per edit and
/// row 0 for tokens without one. A token's new activation is a * h + v + |h| w + c(h) u, with a, v, w and u
/// from its row. In row 0, a is 1 and the vectors are -0, which leaves every number unchanged to the bit.
class LayerEdits {
 public:
  /// The parts of the graph. Only those that some edit needs are built.
  enum Part : unsigned {
    kLengths = 1,   // of activations, always
    kScale = 2,     // a
    kAdd = 4,       // v
    kRelative = 8,  // w
    kAlong = 16,    // u
    kChanges = 32,  // lengths of changes, unless they are known before
    kEveryPart = 63
  };

  LayerEdits(ggml_backend_t backend, int n_embd) : backend_(backend), n_embd_(n_embd) {}

  /// Whether edits of this kind can be computed here.
  static bool takes(const Edit& edit);
  static unsigned parts_of(const Edit& edit);

  unsigned parts() const { return parts_; }
  /// Whether the armed parts can change an activation.
  bool changes() const { return (parts_ & ~unsigned{kLengths | kChanges}) != 0; }
  /// The number of nodes that parts add to a graph, at most.
  static int nodes(unsigned parts);
  /// Whether nothing has to change for a batch with these parts and this many different edits.
  bool is_armed(unsigned parts, size_t edits) const {
    return (parts_ | parts) == parts_ && edits < rows_.size();
  }
  /// Allocates what these parts and the armed ones need. Tensors of earlier graphs may be freed. Throws
  /// kOutOfMemory.
  void arm(unsigned parts, size_t edits);
  void disarm() { parts_ = 0; }

  /// Starts a batch: rows whose edits it does not use may be replaced.
  void begin_batch();
  /// The row of an edit that is not neutral, from now on used by this batch; -1 if it has none yet.
  int find(const Edit& edit);
  /// A new row, after arm() for enough edits and find() for all others of the batch. `wait` is called before
  /// tables are written.
  template <class Wait>
  int add(const Edit& edit, const Wait& wait) {
    const int known = find(edit);
    if (known > 0) return known;
    wait();
    return write(free_row(), edit);
  }
  /// The length of the change that a row makes to an activation of length `length`; none if it is measured.
  std::optional<double> change_length(int row, double length) const;

  /// The nodes after `output`, [n_embd, n]. `ids` are the rows of its tokens. `lengths` and `changes` are set
  /// to squared lengths, [1, n]; the latter only if they are measured.
  ggml_tensor* extend(ggml_context* ctx, ggml_tensor* output, ggml_tensor* ids, ggml_tensor** lengths,
                      ggml_tensor** changes) const;

 private:
  /// The factors of c(h) = strength * (clip(h.u, least, most) - h.u); bounds are b + b' |h|.
  enum Factor : uint8_t { kStrength, kLeast, kMost, kLeastOfLength, kMostOfLength, kFactors };
  struct Row {
    std::optional<Edit> edit;
    bool used = false;      // by the current batch
    double added = 0;       // |v|
    double relative = 0;    // |w|
    bool measured = false;  // the change depends on the activation in other ways
  };

  int free_row();
  int write(int row, const Edit& edit);

  ggml_backend_t backend_;
  int n_embd_;
  unsigned parts_ = 0;
  std::vector<Row> rows_;
  Table scales_;
  Table added_;
  Table relative_;
  Table directions_;
  std::array<Table, kFactors> factors_;
};

}  // namespace tapline
