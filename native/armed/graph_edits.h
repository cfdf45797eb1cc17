#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "armed/layer_dots.h"
#include "armed/layer_edits.h"
#include "armed/row_copies.h"
#include "armed/row_input.h"
#include "armed/table.h"
#include "capture/batch_edits.h"
#include "capture/graph_view.h"
#include "capture/residual_stream.h"
#include "ends/block_end.h"
#include "llama.h"

namespace tapline {

/// The output of a block, before or after its edits, as rows that are copied for the host.
struct CopiedRows {
  int layer = 0;
  bool edited = false;

  bool operator<(const CopiedRows& other) const {
    return std::tie(layer, edited) < std::tie(other.layer, other.edited);
  }
};

/// Edits block outputs inside the graphs of one llama_context, and reads lengths and projections of
/// activations there, or copies the rows: the graph is not split, and nothing else leaves its device.
/// BlockTap does the same from outside and supports everything else.
///
/// A layer is armed once a batch needs it and until disarm(), so that a steady stream of batches reuses one
/// graph. Several edits of one activation are stages, one after the other. Unarmed, the context builds the
/// same graphs as without this object. All of it on the thread that decodes; the context must not decode
/// after this object is gone.
class GraphEdits final : public BlockEnd {
 public:
  /// Proves in a graph with edits in every layer which of them can be edited. Throws kOutOfMemory.
  GraphEdits(llama_context* ctx, const ResidualStream& stream);
  ~GraphEdits() override;
  GraphEdits(const GraphEdits&) = delete;
  GraphEdits& operator=(const GraphEdits&) = delete;

  /// Whether to compute in the graph what it can: `edits` is "graph" or "callback" (BlockTap); if it is
  /// empty, the graph is chosen where a device other than the processor computes any block of the model.
  static bool chosen(const llama_context* ctx, const std::string& edits);

  /// Whether a place's activations can be read here, and an edit be applied.
  bool reads(Place place) const;
  bool takes(const Edit& edit) const { return reads(edit.place()) && LayerEdits::takes(edit); }

  /// Numbers of an activation.
  int n_embd() const { return n_embd_; }
  bool armed() const { return armed_; }
  /// Arms the context for one decode of `batch`. All edits must be taken; lengths and products are read too,
  /// and rows copied, at layers that are. False if the graph has no room for the nodes. Throws kOutOfMemory.
  /// The context is then disarmed.
  bool arm(const llama_batch& batch, const BatchEdits& edits, const std::set<Place>& lengths,
           const std::vector<Dot>& dots, const std::set<CopiedRows>& copies = {});
  /// The names of the outputs before their edits, by layer; empty where armed edits do not change the output.
  /// Whatever changes a row there leaves everything in the graph as it is for rows without edits.
  std::vector<std::string> outputs_before_edits() const;
  /// Before a decode of anything else.
  void disarm();
  /// After a decode that failed.
  void abandon() { batch_ = nullptr; }
  /// After a successful decode: reads the results, and adds the effects of the edits. Throws kInternal if the
  /// graph computed other tokens than the batch has.
  void collect(const llama_batch& batch, const BatchEdits& edits);
  /// After collect(), the length of an activation before its edits, and its product with a vector; NaN if the
  /// layer did not compute the row.
  double length(Place place, int batch_index) const;
  double product(const Dot& dot, int batch_index);
  /// After collect(), the copied rows by batch index, [n_tokens, n_embd]; undefined where the layer did not
  /// compute them.
  const float* rows(CopiedRows copied) const;
  bool computed(int layer, int batch_index) const;

  /// See BlockEnd.
  ggml_tensor* extend(const llm_graph_context& graph, ggml_tensor* output, int layer) override;

 private:
  /// A device's row numbers for the current micro-batch, and results of the batch by row.
  struct Device {
    ggml_backend_t backend = nullptr;
    Table numbers;       // I32
    Table results;       // F32, [slots, rows]
    int slots = 0;       // per row
    bool armed = false;  // some layer on it is
    std::vector<float> read;
  };
  /// The edits that come first, second … among those of an activation.
  struct Stage {
    LayerEdits edits;
    int lengths = -1;  // slots; -1: none
    int changes = -1;
    std::vector<int32_t> rows;  // of the current batch
  };
  struct Layer {
    bool proven = false;
    bool prunes = false;              // it computes only rows with outputs
    std::optional<size_t> device;     // none: a kind without a backend
    std::vector<Stage> stages;        // those that some batch has needed
    std::optional<LayerDots> dots;    // always, with a device
    int first_dot = -1;               // slot
    std::array<RowCopies, 2> copies;  // of the rows before and after edits

    bool has_edits() const { return !stages.empty() && stages.front().edits.parts() != 0; }
    bool armed() const { return has_edits() || copies[0].armed() || copies[1].armed(); }
    /// Whether a token may have another activation after the edits.
    bool changes() const {
      return std::any_of(stages.begin(), stages.end(),
                         [](const Stage& stage) { return stage.edits.changes(); });
    }
  };
  /// The needs of a batch at one layer.
  struct Needs {
    std::vector<std::pair<unsigned, std::set<const Edit*>>> stages;  // parts and different edits
    std::vector<const Dot*> dots;
    std::array<bool, 2> copies{};

    std::pair<unsigned, std::set<const Edit*>>& stage(size_t index);
  };
  /// The end of a block in the graph of the proof.
  struct Seen {
    int times = 0;
    const ggml_tensor* before = nullptr;
    const ggml_tensor* after = nullptr;
    std::set<const ggml_tensor*> added;  // nodes of ours
  };

  bool supports(ggml_backend_t backend) const;
  void prove(const ResidualStream& stream);
  static bool proven(const GraphView& graph, const Seen& seen, const std::string& name);
  static void note_added(const ggml_tensor* node, Seen& seen);
  ggml_cgraph* reserve();

  static std::map<int, Needs> needs_of(const BatchEdits& edits, const std::set<Place>& lengths,
                                       const std::vector<Dot>& dots, const std::set<CopiedRows>& copies);
  bool has_room(const std::map<int, Needs>& needs) const;
  void arm_layers(const std::map<int, Needs>& needs);
  void assign_slots();
  void assign_rows(const llama_batch& batch, const BatchEdits& edits, const std::map<int, Needs>& needs);

  ggml_tensor* numbers(const llm_graph_context& graph, RowInput& input, RowInput::Part part) const;
  RowInput& input_of(const llm_graph_context& graph);
  void store(const llm_graph_context& graph, const Layer& layer, ggml_tensor* values, ggml_tensor* at,
             int slot) const;
  int index_of(const llama_ubatch& ubatch, uint32_t row) const;
  void upload(const llama_ubatch& ubatch, const std::vector<RowInput::Part>& parts);

  double result(const Layer& layer, int slot, int batch_index) const;

  llama_context* ctx_;
  int n_embd_;
  int64_t row_limit_;    // of a batch
  int64_t micro_limit_;  // of a micro-batch
  std::vector<Device> devices_;
  std::vector<Layer> layers_;
  bool armed_ = false;
  uint64_t shape_ = 0;   // changes with everything that graphs depend on
  int plain_nodes_ = 0;  // of a graph without edits
  int node_limit_ = 0;
  std::vector<Seen>* proof_ = nullptr;

  // Of the batch under way.
  const llama_batch* batch_ = nullptr;
  std::set<CopiedRows> copies_;
  std::vector<bool> outputs_;                  // by row
  std::unordered_map<uint64_t, int> indices_;  // by sequence and position
  bool mismatch_ = false;
};

/// A key of a row's sequence and position, which occur once in a batch.
inline uint64_t row_key(llama_seq_id sequence, llama_pos position) {
  return uint64_t(uint32_t(sequence)) << 32U | uint32_t(position);
}

}  // namespace tapline
