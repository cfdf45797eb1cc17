#include "experiment/sweep.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "capture/softmax.h"
#include "experiment/checks.h"
#include "experiment/next_token.h"

namespace tapline {

namespace {

/// Rows whose logits stay within 64 MiB.
size_t rows_by_logits(int n_vocab) {
  return std::max<size_t>(16, (16U << 20U) / static_cast<size_t>(std::max(1, n_vocab)));
}

bool all_neutral(const EditPlan& plan) {
  return std::all_of(plan.begin(), plan.end(), [](const Edit& edit) { return edit.neutral(); });
}

/// One sequence that is being generated.
struct LiveRow {
  size_t prompt = 0;
  size_t row = 0;  // 0 is the baseline, r is distinct plan r - 1
  llama_seq_id sequence = 0;
  llama_token token = 0;  // computed next
  uint32_t position = 0;
  bool first = true;
};

/// Computes the plans that differ, and what every prompt did under each of them.
class Sweep {
 public:
  Sweep(Passes& passes, const SweepRequest& request, const CancelToken& cancel, const CountProgress& progress)
      : passes_(passes), request_(request), cancel_(cancel), progress_(progress), targets_(request.targets) {
    for (const EditPlan& plan : request.plans) {
      size_t row = 0;
      if (all_neutral(plan)) {
        neutral_.insert(neutral_.end(), plan.begin(), plan.end());
      } else {
        const auto same = std::find_if(distinct_.begin(), distinct_.end(),
                                       [&](const EditPlan* other) { return *other == plan; });
        row = 1 + static_cast<size_t>(same - distinct_.begin());
        if (same == distinct_.end()) distinct_.push_back(&plan);
      }
      row_of_.push_back(row);
    }
    targets_.resize(request.prompts.size(), -1);
    rows_.assign(request.prompts.size(), std::vector<SweepRow>(rows_a_prompt()));
    for (std::vector<SweepRow>& prompt : rows_) {
      for (size_t row = 0; row < prompt.size(); ++row) prompt[row].effects.resize(plan_of(row).size());
    }
    positions_a_prompt_ = rows_a_prompt() * static_cast<size_t>(std::max(1, request.max_tokens));
  }

  std::vector<SweepTrial> run() {
    const size_t n_prompts = request_.prompts.size();
    // More rows at once than 128 gain nothing.
    const size_t most_rows =
        std::min({most_outputs_, size_t{128}, size_t{passes_.n_seq_max()}, size_t{passes_.n_batch()}});
    if (rows_a_prompt() > most_rows)
      throw_error(ErrorCode::kInvalidArgument, "A prompt with ", request_.plans.size(),
                  " plans of edits needs ", rows_a_prompt(), " sequences; this context computes ", most_rows,
                  " at once.");
    const Passes::ClearAtEnd clear{passes_};
    for (size_t first = 0; first < n_prompts;) {
      size_t end = first;
      size_t cells = 0;
      while (end < n_prompts && (end + 1 - first) * rows_a_prompt() <= most_rows &&
             cells + cells_of(end) <= passes_.n_ctx())
        cells += cells_of(end++);
      if (end == first)
        throw_error(ErrorCode::kTokenLimit, "A prompt with its continuations needs ", cells_of(first),
                    " tokens; the context holds ", passes_.n_ctx(), ".");
      compute(first, end);
      first = end;
      done_ = first * positions_a_prompt_;
      progress_(done_, n_prompts * positions_a_prompt_);
    }
    std::vector<SweepTrial> trials(n_prompts);
    for (size_t p = 0; p < n_prompts; ++p) {
      trials[p].target = targets_[p];
      trials[p].rows = requested_rows(p);
      trials[p].baseline = rows_[p][0];
      trials[p].baseline.effects.clear();
    }
    return trials;
  }

 private:
  const EditPlan& plan_of(size_t row) const { return row == 0 ? neutral_ : *distinct_[row - 1]; }
  size_t rows_a_prompt() const { return 1 + distinct_.size(); }
  /// Tokens of a prompt that are computed before its last one, which is where generation starts.
  size_t before_last(size_t prompt) const { return request_.prompts[prompt].size() - 1; }
  /// Tokens of them that a row shares with the baseline: up to the first one that its plan edits.
  size_t shared(size_t prompt, size_t row) const {
    size_t first = before_last(prompt);
    if (row == 0) return first;
    const auto n_prompt = static_cast<int32_t>(request_.prompts[prompt].size());
    for (const Edit& edit : plan_of(row)) {
      first = std::min(first, static_cast<size_t>(edit.positions.first_in_prompt(n_prompt)));
    }
    return first;
  }
  /// Cells of the K/V cache that a prompt with all its continuations takes.
  size_t cells_of(size_t prompt) const {
    size_t count = 1 + before_last(prompt);
    for (size_t row = 0; row < rows_a_prompt(); ++row) {
      count += before_last(prompt) - shared(prompt, row) + static_cast<size_t>(request_.max_tokens);
    }
    return count;
  }
  void add_edits(size_t prompt, size_t row, uint32_t position) {
    edits_.add(plan_of(row), rows_[prompt][row].effects, static_cast<int>(batch_.size()),
               static_cast<int32_t>(position), static_cast<int32_t>(request_.prompts[prompt].size()));
  }
  /// Whether a token's row is edited at the last block, which computes the rows of outputs alone.
  bool needs_output(size_t prompt, size_t row, uint32_t position) const {
    const auto n_prompt = static_cast<int32_t>(request_.prompts[prompt].size());
    const EditPlan& plan = plan_of(row);
    return std::any_of(plan.begin(), plan.end(), [&](const Edit& edit) {
      return edit.layer == passes_.info().n_layer - 1 &&
             edit.positions.contains(static_cast<int32_t>(position), n_prompt);
    });
  }
  /// A row whose prompt is computed but for its last token, in `sequence`.
  LiveRow begin(size_t prompt, size_t row, llama_seq_id sequence) const {
    const std::vector<llama_token>& tokens = request_.prompts[prompt];
    return {prompt, row, sequence, tokens.back(), static_cast<uint32_t>(before_last(prompt)), true};
  }
  /// What a prompt did under each requested plan, in order.
  std::vector<SweepRow> requested_rows(size_t prompt) const {
    std::vector<SweepRow> all;
    auto measured = rows_[prompt][0].effects.begin();
    for (size_t i = 0; i < row_of_.size(); ++i) {
      all.push_back(rows_[prompt][row_of_[i]]);
      if (row_of_[i] > 0) continue;
      const auto end = measured + static_cast<std::ptrdiff_t>(request_.plans[i].size());
      all.back().effects.assign(measured, end);
      measured = end;
    }
    return all;
  }
  /// Computes the batch, if there is one.
  void flush() {
    if (batch_.size() > 0) passes_.run(batch_, edits_, cancel_);
    batch_.clear();
    edits_.clear();
    outputs_ = 0;
  }

  /// Computes tokens [from, to) of a prompt under a plan, in this batch or the next ones.
  void add_prompt(size_t prompt, size_t row, llama_seq_id sequence, size_t from, size_t to) {
    if (!passes_.stream().packs_sequences) flush();
    for (size_t i = from; i < to; ++i) {
      const auto position = static_cast<uint32_t>(i);
      const bool output = needs_output(prompt, row, position);
      add_edits(prompt, row, position);
      batch_.add(request_.prompts[prompt][i], position, sequence, output);
      outputs_ += output ? 1 : 0;
      if (batch_.size() == passes_.n_batch() || outputs_ == most_outputs_) flush();
    }
  }

  /// Computes every prompt but its last token for every row. What rows have in common, up to the first token
  /// that one of them edits, is computed once: a row leaves the baseline's sequence where it becomes another
  /// one. (Part of a sequence could not be copied later: recurrent and sliding memories have forgotten it.)
  void prefill(size_t first, size_t end) {
    const auto sequence_of = [&](size_t prompt, size_t row) {
      return static_cast<llama_seq_id>((prompt - first) * rows_a_prompt() + row);
    };
    // Where rows leave, prompt by prompt: the k-th places of all prompts are reached in common batches.
    std::vector<std::vector<size_t>> leaves(end - first);
    size_t rounds = 0;
    for (size_t prompt = first; prompt < end; ++prompt) {
      std::vector<size_t>& places = leaves[prompt - first];
      for (size_t row = 0; row < rows_a_prompt(); ++row) places.push_back(shared(prompt, row));
      std::sort(places.begin(), places.end());
      places.erase(std::unique(places.begin(), places.end()), places.end());
      rounds = std::max(rounds, places.size());
    }
    for (size_t round = 0; round < rounds; ++round) {
      const auto each_prompt = [&](const auto& visit) {
        for (size_t prompt = first; prompt < end; ++prompt) {
          const std::vector<size_t>& places = leaves[prompt - first];
          if (round < places.size()) visit(prompt, round == 0 ? 0 : places[round - 1], places[round]);
        }
      };
      each_prompt([&](size_t prompt, size_t from, size_t to) {
        add_prompt(prompt, 0, sequence_of(prompt, 0), from, to);
      });
      flush();
      each_prompt([&](size_t prompt, size_t, size_t to) {
        for (size_t row = 1; row < rows_a_prompt(); ++row) {
          if (shared(prompt, row) == to)
            llama_memory_seq_cp(passes_.memory(), sequence_of(prompt, 0), sequence_of(prompt, row), -1, -1);
        }
      });
    }
    for (size_t prompt = first; prompt < end; ++prompt) {
      for (size_t row = 1; row < rows_a_prompt(); ++row)
        add_prompt(prompt, row, sequence_of(prompt, row), shared(prompt, row), before_last(prompt));
    }
    flush();
  }

  void compute(size_t first, size_t end) {
    passes_.clear_memory();
    prefill(first, end);
    std::vector<LiveRow> live;
    for (size_t prompt = first; prompt < end; ++prompt) {
      for (size_t row = 0; row < rows_a_prompt(); ++row)
        live.push_back(begin(prompt, row, static_cast<llama_seq_id>(live.size())));
    }
    const size_t rows = live.size();
    generate(std::move(live));
    if (rows == 1) return;
    // Where an architecture multiplies what a row must not see by zero, one row's NaN is its neighbours',
    // too. So a row counts as broken only once it was so alone, in a memory without any other row's numbers.
    for (size_t prompt = first; prompt < end; ++prompt) {
      // Without the baseline, the others did not know their target.
      const bool all = !rows_[prompt][0].finite;
      for (size_t row = 0; row < rows_a_prompt(); ++row) {
        if (all || !rows_[prompt][row].finite) compute_alone(prompt, row);
      }
    }
  }

  /// Computes one row from the beginning of its prompt, without sharing anything.
  void compute_alone(size_t prompt, size_t row) {
    rows_[prompt][row] = {};
    rows_[prompt][row].effects.resize(plan_of(row).size());
    passes_.clear_memory();
    add_prompt(prompt, row, 0, 0, before_last(prompt));
    flush();
    generate({begin(prompt, row, 0)});
  }

  /// Generates all rows in lockstep, each after its prompt.
  void generate(std::vector<LiveRow> live) {
    // One row a batch is slow, and right where llama.cpp mixes sequences up.
    const size_t most = passes_.stream().packs_sequences ? live.size() : 1;
    while (!live.empty()) {
      std::vector<LiveRow> next;
      for (size_t first = 0; first < live.size(); first += most) {
        const size_t count = std::min(most, live.size() - first);
        for (size_t i = first; i < first + count; ++i) {
          add_edits(live[i].prompt, live[i].row, live[i].position);
          batch_.add(live[i].token, live[i].position, live[i].sequence, /*output=*/true);
        }
        flush();
        done_ += count;
        progress_(done_, request_.prompts.size() * positions_a_prompt_);
        for (size_t i = 0; i < count; ++i) {
          if (continues(live[first + i], passes_.logits(i))) next.push_back(live[first + i]);
        }
      }
      live = std::move(next);
    }
  }

  /// Takes a row's next token from the logits. Returns whether the row continues.
  bool continues(LiveRow& row, const float* logits) {
    const int n_vocab = passes_.info().n_vocab;
    SweepRow& out = rows_[row.prompt][row.row];
    const llama_token token = most_probable(logits, n_vocab);
    if (token < 0) {
      out.finite = false;
      passes_.taint();
      return false;
    }
    if (row.first) {
      // The baseline comes first among a prompt's rows, so its choice is known to the others.
      llama_token& target = targets_[row.prompt];
      if (target < 0 && row.row == 0) target = token;
      out.target_probability = target < 0
                                   ? std::numeric_limits<float>::quiet_NaN()
                                   : Softmax(logits, n_vocab, logits[token]).probability(logits[target]);
      row.first = false;
    }
    if (request_.max_tokens <= 0 || llama_vocab_is_eog(passes_.model().vocab(), token)) return false;
    out.continuation.push_back(token);
    row.token = token;
    ++row.position;
    return out.continuation.size() < static_cast<size_t>(request_.max_tokens);
  }

  Passes& passes_;
  const SweepRequest& request_;
  const CancelToken& cancel_;
  const CountProgress& progress_;
  std::vector<const EditPlan*> distinct_;
  std::vector<size_t> row_of_;  // for each requested plan, 0 for the baseline or 1 + index in `distinct_`
  EditPlan neutral_;            // all edits of neutral plans: they only measure the baseline's rows
  std::vector<llama_token> targets_;
  std::vector<std::vector<SweepRow>> rows_;  // [prompt][1 + distinct]
  const size_t most_outputs_ = rows_by_logits(passes_.info().n_vocab);
  size_t positions_a_prompt_ = 0;
  size_t done_ = 0;  // positions
  TokenBatch batch_{passes_.n_batch()};
  BatchEdits edits_;
  size_t outputs_ = 0;  // in the batch
};

}  // namespace

std::vector<SweepTrial> sweep(Passes& passes, const SweepRequest& request, const CancelToken& cancel,
                              const CountProgress& progress) {
  const auto locked = passes.lock();
  check_causal(passes);
  for (const auto& prompt : request.prompts) check_tokens(passes, prompt);
  check_targets(passes, request.targets);
  for (const EditPlan& plan : request.plans) check_edits(passes, plan);
  return Sweep(passes, request, cancel, progress).run();
}

}  // namespace tapline
