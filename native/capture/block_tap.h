#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "capture/batch_edits.h"
#include "capture/residual_stream.h"
#include "capture/row_map.h"
#include "ggml.h"

namespace tapline {

/// What to do at one point of one block during a decode.
struct TapPoint {
  int layer = 0;
  bool read = true;
  /// Applied in order after reading, before anything reads the rows.
  const std::vector<RowEdit>* edits = nullptr;
  Point point = Point::kBlockOut;

  Place place() const { return {layer, point}; }
};

/// Rows of one place, as they were computed: before any edit.
struct TappedRows {
  int layer;
  const float* values;              // [count, width]
  const std::vector<int>* indices;  // batch index of each row
  size_t count;
  Point point;
  size_t width;  // numbers of a row
  /// Of the attention: [heads, count, width], for each head and token a row over the memory's cells.
  size_t heads = 1;
  const ggml_tensor* tensor = nullptr;  // as it stands in the graph, readable now
  const int32_t* experts = nullptr;     // of the router, [count, width]: whose weights the values are

  Place place() const { return {layer, point}; }
};

/// Reads and edits points of blocks while llama_decode runs: a state machine behind llama.cpp's eval
/// callback.
///
/// The scheduler asks about each node in graph order and cuts the graph after the nodes that are wanted, so
/// the tap wants as few as possible: the armed places, in the graph's order, and nothing when disarmed.
/// Points inside a block are known by their distance from a name; where the block ends, the way back from its
/// output is followed to each of them, and a pass in which one was another tensor fails.
///
/// What ends a pass early, unless the tap is shared, is an exception that goes through llama_decode:
/// EarlyExit behind the deepest armed layer with `leave_early`, Error on a cancel or where the graph is not
/// what was planned. Answering false, which ggml offers for this, ends one split only. Where several devices
/// compute, each later split would still have its inputs copied, and the scheduler, which picks the experts
/// to copy, reads choices that were never computed and aborts the process. llama.cpp's frames in between are
/// C++ and hold nothing but objects with destructors; the context is as after a completed pass, without
/// outputs.
///
/// One tap belongs to one llama_context and is used by the thread that decodes.
class BlockTap {
 public:
  using Sink = std::function<void(const TappedRows&)>;
  /// The pass is done as far as it was wanted. Its micro-batch is the last one that llama_decode computes.
  struct EarlyExit {};

  /// With `shared`, rows of strangers are in the same batches: whatever goes wrong, a pass is computed to its
  /// end, and from there on nothing is read or changed in it.
  explicit BlockTap(bool shared = false) : shared_(shared) {}
  void describe(const ResidualStream* stream) { stream_ = stream; }

  /// `points` in any order, each at a place where a tensor is computed. `rows` tells which token each row of
  /// each micro-batch is.
  void arm(std::vector<TapPoint> points, bool leave_early, const std::vector<MicroBatch>* rows, Sink sink,
           const CancelToken& cancel);
  void disarm();

  /// Throws what went wrong in a shared tap since arm(): a wrong shape, an unexpected row order.
  void check() const;
  /// Throws where a pass that ended has not reached every armed place.
  void check_complete() const;

  /// For llama_context_params: ggml_backend_sched_eval_callback and its user data. Throws EarlyExit; Error,
  /// when cancelled or where the graph is not what was planned; whatever the sink throws.
  static bool on_node(ggml_tensor* t, bool ask, void* user_data);

 private:
  /// A point, and how its node is recognised.
  struct ArmedPoint {
    TapPoint point;
    const char* anchor;
    int offset;
    int node;
    bool proof_only;  // nothing is done there; only what was reached in the block is proven
    int width;
    int heads;
    const ggml_tensor* tensor = nullptr;  // of the current micro-batch
    int64_t due = -1;                     // the number of its node, once its anchor was reached
  };

  bool wants(const ggml_tensor* t);
  void prove(const ArmedPoint& output, const ggml_tensor* t);
  ArmedPoint armed_point(const TapPoint& point, bool proof_only) const;
  void take(ggml_tensor* t);
  void begin_micro_batch(const ggml_tensor* first_node);
  /// Applies the edits of a layer to its rows, [indices.size(), n_embd]. Returns the first row that was
  /// edited and the number of rows from there to the last one.
  std::pair<size_t, size_t> edit(const std::vector<RowEdit>& edits, const std::vector<int>& indices,
                                 float* values, const ArmedPoint& here);
  void finish_point();
  void take_attention(const ArmedPoint& here, ggml_tensor* t);
  void take_routing(const ArmedPoint& here, ggml_tensor* t);
  /// The batch indices of so many rows of the micro-batch: all of its tokens', or those of its outputs alone,
  /// which the last block usually computes; null where it has neither.
  const std::vector<int>* rows_of(size_t count) const;
  /// Fails where the graph reads other tokens than were planned.
  bool in_order();
  /// A contiguous tensor's numbers, where the host can read them.
  float* readable(const ggml_tensor* t);
  void look_for_positions(const ggml_tensor* node);
  void fail(const std::string& sentence);

  bool shared_;
  const ResidualStream* stream_ = nullptr;
  std::vector<ArmedPoint> points_;
  const std::vector<MicroBatch>* batches_ = nullptr;
  Sink sink_;
  CancelToken cancel_;
  bool armed_ = false;
  bool leave_early_ = false;

  int batch_ = -1;                         // current micro-batch
  size_t next_ = 0;                        // next point to reach in it
  size_t anchored_ = 0;                    // points whose anchors were reached
  int64_t asked_ = 0;                      // nodes of it so far
  std::vector<llama_token> seen_tokens_;   // what the graph of this micro-batch really reads
  std::vector<llama_pos> seen_positions_;  // the same of positions; empty until a node reads them
  std::vector<float> staging_;
  std::vector<float> parts_;  // of a row, while several of its heads are edited as one
  std::vector<int32_t> experts_;
  std::vector<int> row_at_;  // of each batch index, -1 where it has none
  std::string failure_;      // of a shared tap
};

}  // namespace tapline
