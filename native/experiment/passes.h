#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/cancel.h"
#include "base/counted.h"
#include "base/counted_rows.h"
#include "capture/block_tap.h"
#include "capture/logit_direction.h"
#include "capture/logit_lens.h"
#include "capture/residual_stream.h"
#include "capture/top_tokens.h"
#include "experiment/attention.h"
#include "experiment/explain.h"
#include "experiment/patch_sweep.h"
#include "experiment/routing.h"
#include "llama-cpp.h"
#include "model/model.h"

namespace tapline {

struct TokenBatch;

struct ContextOptions {
  uint32_t n_ctx = 512;         // tokens held, over all sequences
  uint32_t n_batch = 0;         // tokens computed at once; 0: chosen by vocabulary size
  uint32_t n_seq_max = 1;       // sequences held at once
  int n_threads = 0;            // 0: all cores
  bool keep_attention = false;  // compute without flash attention, which keeps no weights
};

/// Rows of one point of one block.
struct LayerStates {
  int layer = 0;
  Point point = Point::kBlockOut;
  size_t rows = 0;
  size_t width = 0;           // n_embd, or of what heads read their own
  std::vector<float> states;  // [rows, width]; empty unless kept
  std::vector<float> norms;   // [rows], L2
  TopTokens lens;             // empty unless asked for and supported
};

struct AdvanceRequest {
  std::vector<llama_token> tokens;
  std::vector<int> layers;                      // distinct; any order
  std::vector<Point> points{Point::kBlockOut};  // of each of these layers; distinct
  bool all_rows = true;                         // every token's row, or the last token's only
  bool keep_states = true;                      // return the states, or only norms and lens
  int lens_top = 0;  // top k of the logit lens for every captured row of the residual stream; 0: none
  llama_token lens_target = -1;  // whose place in the lens is told for every captured row; negative: nobody's
  bool lens_answer = false;  // or that of the pass's own answer for the last row, where next_top gives one
  int next_top = 0;          // top k of the next token after the last one; 0: none
  bool keep_logits = false;  // the next token's logits
  /// Of a text in one pass, from its beginning.
  AttentionRequest attention;
  /// Layers whose router is read at every token; distinct.
  std::vector<int> routing;
  /// A token id for each token, whose log-probability after it is wanted; negative: none. Empty: nowhere.
  /// Every such row takes a head, so that no other answer may be asked for in the same pass.
  std::vector<llama_token> scored;
  int scored_top = 0;       // top k of the tokens in their place; 0: none
  bool early_exit = false;  // compute no block behind the deepest captured one, when no head is wanted
  EditPlan edits;  // the tokens so far, these included, are the prompt; their places are among those captured
};

struct AdvanceResult {
  std::vector<LayerStates> layers;                   // layer by layer, then point by point, as asked for
  std::vector<LayerAttention> attention;             // in the order asked for
  std::vector<LayerRouting> routing;                 // in the order asked for
  TopTokens next;                                    // one row
  std::vector<float> logits;                         // [n_vocab]
  std::vector<EditEffect> effects;                   // one an edit
  std::vector<double> log_probabilities;             // one a token where `scored`; 0 where none was wanted
  std::vector<int32_t> scored_top_ids;               // [tokens, scored_top], most probable first
  std::vector<double> scored_top_log_probabilities;  // [tokens, scored_top]
};

/// Which rows of a sequence are wanted: its last token's, every token's, or the mean of its tokens'.
enum class FeatureRows { kLast, kAll, kMean };

struct FeatureRequest {
  std::vector<std::vector<llama_token>> sequences;
  std::vector<int> layers;
  Point point = Point::kBlockOut;
  FeatureRows rows = FeatureRows::kLast;
  /// Of each sequence the first token that its mean, or all its rows, take in: of a prompt and its response
  /// the response may be wanted alone. Empty: the first. A mean takes in the rows that count from there on.
  std::vector<int32_t> starts;

  size_t start_of(size_t sequence) const {
    return starts.empty() ? 0 : static_cast<size_t>(starts[sequence]);
  }
};

/// Rows of the point: one [rows, n_embd] matrix a layer, in the order asked for; sequence by sequence.
struct FeatureResult {
  std::vector<int> layers;
  std::vector<std::vector<float>> states;
  std::vector<ExcludedRows> excluded;  // from the means, of all sequences; one a layer
};

struct SweepRequest {
  std::vector<std::vector<llama_token>> prompts;
  std::vector<EditPlan> plans;       // each is tried on every prompt
  std::vector<llama_token> targets;  // one a prompt; negative: the baseline's most probable token
  int max_tokens = 32;               // of each greedy continuation
};

/// What one prompt did under one plan of edits, or under none.
struct SweepRow {
  float target_probability = 0;  // after the prompt; NaN where only a broken baseline could say of what
  std::vector<llama_token> continuation;  // greedy; without the end-of-generation token
  bool finite = true;                     // false: some logit was not, and the row ended there
  std::vector<EditEffect> effects;        // one an edit of the plan, over all of its rows
};

struct SweepTrial {
  llama_token target = 0;  // -1 where none was given and the baseline is not finite
  SweepRow baseline;
  std::vector<SweepRow> rows;  // one a plan, in order
};

/// One llama_context with a tap on its blocks: experiments on a model, isolated from whatever else uses the
/// same weights. Calls are serialised; a Passes never touches another context's K/V cache.
class Passes : public Counted<Passes> {
 public:
  /// Throws kOutOfMemory when the context does not fit.
  Passes(std::shared_ptr<Model> model, const ContextOptions& options);
  ~Passes();
  Passes(const Passes&) = delete;
  Passes& operator=(const Passes&) = delete;

  const ResidualStream& stream() const { return stream_; }
  uint32_t n_ctx() const { return n_ctx_; }
  /// Whether a token's row depends on the tokens before it only, so that it says what comes next.
  bool causal() const { return llama_get_memory(ctx_) != nullptr; }
  /// Tokens that one advance() may take.
  uint32_t n_batch() const { return n_batch_; }

  /// Continues the context's one sequence with 1..n_batch() tokens. Call in chunks; the K/V cache is kept.
  /// Throws kCompute where a block output or a probability is not finite.
  ///
  /// Logits are the same bits whatever is captured. No output head is computed for rows that nobody asked
  /// for: all rows of the last block beside an answer take a second pass on most architectures. With
  /// early_exit a sequence can only be continued to the same depth, until reset().
  AdvanceResult advance(const AdvanceRequest& request, const CancelToken& cancel);

  /// Block outputs of many sequences, in packed batches that leave behind the deepest layer. Where every row
  /// of the last block is wanted, a batch holds room for the logits of all of its tokens. Forgets the
  /// context's sequence. `progress(done, total)` counts sequences.
  FeatureResult features(const FeatureRequest& request, const CancelToken& cancel,
                         const std::function<void(size_t, size_t)>& progress);

  /// Runs every prompt under every plan of edits beside its baseline: each prompt is computed once up to the
  /// first token that a plan edits, its K/V shared by sequence copy, and all rows of as many prompts as fit
  /// are generated in lockstep as one batch a step. A plan of neutral edits is the baseline itself, so its
  /// numbers are equal by construction; only the rows' lengths are measured. K/V is kept, so a token
  /// generated under an edit stays edited for the tokens after it. Forgets the context's sequence.
  /// `progress(done, total)` counts generated positions.
  std::vector<SweepTrial> sweep(const SweepRequest& request, const CancelToken& cancel,
                                const std::function<void(size_t, size_t)>& progress);

  /// Puts single rows of one prompt's blocks, or single heads' parts of them, into the run of another prompt,
  /// a site at a time: what does the model answer then? Both prompts are computed once. A site at token p has
  /// the run's K/V before p and computes the tokens from p on, in batches of many sites. Where that would
  /// change nothing, because nothing reads the row or because both runs hold the same bits there, the answer
  /// is the run's own. The context needs twice the prompt's tokens, batches of at least the prompt's, and two
  /// sequences; more of each lets more sites share a batch. Forgets the context's sequence. `progress(done,
  /// total)` counts the sites that are computed.
  PatchSweepResult patch_sweep(const PatchSweepRequest& request, const CancelToken& cancel,
                               const PatchProgress& progress);

  /// Whether, and how, rows can stand where tokens' embeddings do. Found out once; forgets the context's
  /// sequence then.
  EmbeddingInput embedding_input(const CancelToken& cancel);

  /// What the model says to a prompt in which a row stands in a token's embedding's place: the tokens before
  /// it, the row and the tokens after it, each a pass of its own, then its own tokens one by one. The context
  /// needs the prompt's tokens, one more, and `max_tokens`. Forgets the context's sequence. `progress(done,
  /// total)` counts tokens of answers. Throws kUnsupportedArchitecture where embedding_input() says no.
  std::vector<Explanation> explain(const ExplainRequest& request, const CancelToken& cancel,
                                   const std::function<void(size_t, size_t)>& progress);

  /// What the final norm and the head make of rows of a block output: logits, [rows, n_vocab]. Throws
  /// kUnsupportedArchitecture where the model's way there is not known.
  std::vector<float> lens_logits(const std::vector<float>& rows);

  /// What lenses read of rows of the stream; see LogitLens::read(). Throws kUnsupportedArchitecture where the
  /// model's way from there to its logits is not known, kInvalidArgument where rows are none of this model's.
  std::vector<LensReading> read_lens(LensRequest request, const CancelToken& cancel);

  /// How a token's logit depends on the last block's output, [n_embd], with the final norm's scale kept as it
  /// is there.
  LogitDirection logit_direction(const std::vector<float>& state, llama_token token) const;

  /// Forgets all tokens.
  void reset();

 private:
  std::vector<int> check_layers(const std::vector<int>& layers) const;
  /// The places, layer by layer and then point by point. Throws where the model has one of them not.
  std::vector<Place> check_places(const std::vector<int>& layers, const std::vector<Point>& points) const;
  void check_point(Point point) const;
  /// The same, and throws where the point is no vector of n_embd a token.
  void check_hidden(Point point) const;
  static void check_changeable(Point point);
  const Site& check_place(Place place) const;
  static void check_head(Place place, int head, const Site& site);
  void check_tokens(const std::vector<llama_token>& tokens) const;
  void check_edits(const EditPlan& plan) const;
  AttentionReader attention_reader(const AttentionRequest& request, size_t tokens) const;
  RoutingReader routing_reader(const std::vector<int>& layers, size_t tokens) const;
  void check_scored(const AdvanceRequest& request) const;
  /// Of the pass that was just computed.
  void score(const AdvanceRequest& request, AdvanceResult& result);
  /// Decodes with the tap armed; on any failure the context forgets everything and the error is thrown.
  void run_tapped(const TokenBatch& batch, std::vector<TapPoint> points, bool leave_early,
                  const BlockTap::Sink& sink, const CancelToken& cancel);
  /// The same with nothing but edits.
  void run_edited(const TokenBatch& batch, const BatchEdits& edits, const CancelToken& cancel);
  void decode(const llama_batch& batch, const CancelToken& cancel);
  void decode_each(const TokenBatch& batch, const std::vector<MicroBatch>& micros,
                   const std::vector<TapPoint>& points, const BlockTap::Sink& sink,
                   const CancelToken& cancel);
  void clear_memory();
  /// Of an operation with sequences of its own: forgets them, however it ends.
  struct Forgetting {
    Passes& context;
    ~Forgetting() { context.clear_memory(); }
  };
  /// Where the context's sequence stands, to come back to; recurrent states are copied, K/V stays where it
  /// is.
  struct Mark {
    uint32_t n_past = 0;
    std::vector<uint8_t> recurrent;
  };
  Mark mark();
  void back_to(const Mark& mark);
  LogitLens& lens();
  struct LiveRow;
  struct SweepState;
  void sweep_chunk(SweepState& state, size_t first_prompt, size_t n_prompts, const CancelToken& cancel);
  void sweep_alone(SweepState& state, size_t prompt, size_t row, const CancelToken& cancel);
  void generate(SweepState& state, std::vector<LiveRow> live, const CancelToken& cancel);
  void prefill(SweepState& state, size_t first_prompt, size_t n_prompts, const CancelToken& cancel);
  struct PatchRun;
  struct PatchSite;
  struct PatchPlan;
  void check_patch_sweep(const PatchSweepRequest& request) const;
  void plan_places(PatchPlan& plan, const std::vector<PatchPlace>& places) const;
  void patch_run(PatchRun& run, const PatchPlan& plan, const CancelToken& cancel);
  bool shares_prefixes(size_t n_tokens) const;
  void check_explain(const ExplainRequest& request) const;
  EmbeddingInput prove_embedding_input(const CancelToken& cancel);
  /// Goes on with tokens, or with a filling, behind `position` others; the next one's logits, where wanted.
  const float* type(const std::vector<llama_token>& tokens, uint32_t position, bool output,
                    const CancelToken& cancel);
  const float* fill(const Filling& filling, uint32_t position, bool output, const CancelToken& cancel);
  const float* logits_of(size_t batch_row);
  void add_sites(PatchPlan& plan, PatchSweepResult& result) const;
  void patch_sites(const PatchPlan& plan, const CancelToken& cancel,
                   const std::function<void(size_t)>& advanced);

  std::shared_ptr<Model> model_;
  BlockTap tap_;
  llama_context_ptr owner_;  // a constructor that throws frees it
  llama_context* ctx_ = nullptr;
  ResidualStream stream_;
  std::unique_ptr<LogitLens> lens_;
  std::unique_ptr<EmbeddingInput> embedding_input_;  // once it was asked for
  std::mutex mutex_;
  CancelToken abort_;  // what the abort callback of the running decode looks at
  uint32_t n_ctx_ = 0;
  uint32_t n_batch_ = 0;
  uint32_t n_seq_max_ = 1;
  int n_threads_ = 1;
  std::optional<RowThreads> row_threads_;
  uint32_t n_past_ = 0;
  int depth_ = 0;          // blocks that hold K/V of every token so far
  bool doubtful_ = false;  // the memory may hold numbers that are not finite
};

}  // namespace tapline
