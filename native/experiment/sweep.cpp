#include <algorithm>
#include <limits>
#include <string>

#include "capture/softmax.h"
#include "experiment/next_token.h"
#include "experiment/passes.h"
#include "experiment/token_batch.h"

namespace tapline {

namespace {

/// Rows whose logits stay within 64 MiB.
size_t rows_by_logits(int n_vocab) {
  return std::max<size_t>(16, (16U << 20U) / static_cast<size_t>(std::max(1, n_vocab)));
}

/// Rows generated at once: more than 128 gain nothing.
size_t rows_at_once(int n_vocab, uint32_t n_seq_max, uint32_t n_batch) {
  return std::min({rows_by_logits(n_vocab), size_t{128}, size_t{n_seq_max}, size_t{n_batch}});
}

bool all_neutral(const EditPlan& plan) {
  return std::all_of(plan.begin(), plan.end(), [](const Edit& edit) { return edit.neutral(); });
}

}  // namespace

/// One sequence that is being generated.
struct Passes::LiveRow {
  size_t trial = 0;
  size_t row = 0;  // 0 is the baseline, r is distinct plan r - 1
  llama_seq_id sequence = 0;
  llama_token token = 0;  // computed next
  uint32_t position = 0;
  bool first = true;
};

/// The plans that really have to be computed, and what every prompt did under each of them.
struct Passes::SweepState {
  const SweepRequest& request;
  std::vector<const EditPlan*> distinct;
  std::vector<size_t> row_of;  // for each requested plan, 0 for the baseline or 1 + index in `distinct`
  EditPlan neutral;            // all edits of neutral plans: they only measure the baseline's rows
  std::vector<llama_token> targets;
  std::vector<std::vector<SweepRow>> rows;  // [prompt][1 + distinct]
  std::function<void(size_t)> advanced;     // counts computed positions
  int last_layer;

  SweepState(const SweepRequest& all, int n_layer)
      : request(all), targets(all.targets), last_layer(n_layer - 1) {
    for (const EditPlan& plan : all.plans) {
      size_t row = 0;
      if (all_neutral(plan)) {
        neutral.insert(neutral.end(), plan.begin(), plan.end());
      } else {
        const auto same = std::find_if(distinct.begin(), distinct.end(),
                                       [&](const EditPlan* other) { return *other == plan; });
        row = 1 + static_cast<size_t>(same - distinct.begin());
        if (same == distinct.end()) distinct.push_back(&plan);
      }
      row_of.push_back(row);
    }
    targets.resize(all.prompts.size(), -1);
    rows.assign(all.prompts.size(), std::vector<SweepRow>(1 + distinct.size()));
    for (std::vector<SweepRow>& prompt : rows) {
      for (size_t row = 0; row < prompt.size(); ++row) prompt[row].effects.resize(plan_of(row).size());
    }
  }

  const EditPlan& plan_of(size_t row) const { return row == 0 ? neutral : *distinct[row - 1]; }
  size_t rows_a_prompt() const { return 1 + distinct.size(); }
  /// Tokens of a prompt that are computed before its last one, which is where generation starts.
  size_t before_last(size_t prompt) const { return request.prompts[prompt].size() - 1; }
  /// Tokens of them that a row shares with the baseline: up to the first one that its plan edits.
  size_t shared(size_t prompt, size_t row) const {
    size_t first = before_last(prompt);
    if (row == 0) return first;
    const auto n_prompt = static_cast<int32_t>(request.prompts[prompt].size());
    for (const Edit& edit : plan_of(row)) {
      first = std::min(first, static_cast<size_t>(edit.positions.first_in_prompt(n_prompt)));
    }
    return first;
  }
  /// Cells of the K/V cache that a prompt with all its continuations takes.
  size_t cells(size_t prompt) const {
    size_t count = 1 + before_last(prompt);
    for (size_t row = 0; row < rows_a_prompt(); ++row) {
      count += before_last(prompt) - shared(prompt, row) + static_cast<size_t>(request.max_tokens);
    }
    return count;
  }
  void add_edits(BatchEdits& edits, size_t prompt, size_t row, size_t batch_index, uint32_t position) {
    edits.add(plan_of(row), rows[prompt][row].effects, static_cast<int>(batch_index),
              static_cast<int32_t>(position), static_cast<int32_t>(request.prompts[prompt].size()));
  }
  /// Whether a token's row is edited at the last block, which computes the rows of outputs alone.
  bool needs_output(size_t prompt, size_t row, uint32_t position) const {
    const auto n_prompt = static_cast<int32_t>(request.prompts[prompt].size());
    const EditPlan& plan = plan_of(row);
    return std::any_of(plan.begin(), plan.end(), [&](const Edit& edit) {
      return edit.layer == last_layer && edit.positions.contains(static_cast<int32_t>(position), n_prompt);
    });
  }
  /// A row whose prompt is computed but for its last token, in `sequence`.
  LiveRow begin(size_t prompt, size_t row, llama_seq_id sequence) const {
    const std::vector<llama_token>& tokens = request.prompts[prompt];
    return {prompt, row, sequence, tokens.back(), static_cast<uint32_t>(before_last(prompt)), true};
  }
  /// What a prompt did under each requested plan, in order.
  std::vector<SweepRow> requested_rows(size_t prompt) const {
    std::vector<SweepRow> all;
    auto measured = rows[prompt][0].effects.begin();
    for (size_t i = 0; i < row_of.size(); ++i) {
      all.push_back(rows[prompt][row_of[i]]);
      if (row_of[i] > 0) continue;
      const auto end = measured + static_cast<std::ptrdiff_t>(request.plans[i].size());
      all.back().effects.assign(measured, end);
      measured = end;
    }
    return all;
  }
};

std::vector<SweepTrial> Passes::sweep(const SweepRequest& request, const CancelToken& cancel,
                                      const std::function<void(size_t, size_t)>& progress) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const ModelInfo& info = model_->info();
  if (!causal()) {
    throw Error(ErrorCode::kUnsupportedArchitecture,
                "The architecture '" + info.architecture + "' does not generate text token by token.");
  }
  for (const auto& prompt : request.prompts) check_tokens(prompt);
  for (const llama_token target : request.targets) {
    if (target >= info.n_vocab)
      throw Error(ErrorCode::kInvalidArgument, "A target token is outside the vocabulary.");
  }
  for (const EditPlan& plan : request.plans) check_edits(plan);

  SweepState state(request, info.n_layer);
  const size_t n_prompts = request.prompts.size();
  const size_t total =
      n_prompts * state.rows_a_prompt() * static_cast<size_t>(std::max(1, request.max_tokens));
  size_t done = 0;
  state.advanced = [&](size_t positions) {
    done += positions;
    if (progress) progress(done, total);
  };
  const size_t most_rows = rows_at_once(info.n_vocab, n_seq_max_, n_batch_);
  if (state.rows_a_prompt() > most_rows) {
    throw Error(ErrorCode::kInvalidArgument,
                "A prompt with " + std::to_string(request.plans.size()) + " plans of edits needs " +
                    std::to_string(state.rows_a_prompt()) + " sequences; this context computes " +
                    std::to_string(most_rows) + " at once.");
  }
  const Forgetting forgetting{*this};
  size_t first = 0;
  while (first < n_prompts) {
    size_t count = 0;
    size_t cells = 0;
    while (first + count < n_prompts && (count + 1) * state.rows_a_prompt() <= most_rows &&
           cells + state.cells(first + count) <= n_ctx_) {
      cells += state.cells(first + count);
      ++count;
    }
    if (count == 0) {
      throw Error(ErrorCode::kTokenLimit, "A prompt with its continuations needs " +
                                              std::to_string(state.cells(first)) +
                                              " tokens; the context holds " + std::to_string(n_ctx_) + ".");
    }
    sweep_chunk(state, first, count, cancel);
    first += count;
    done = first * state.rows_a_prompt() * static_cast<size_t>(std::max(1, request.max_tokens));
    state.advanced(0);
  }

  std::vector<SweepTrial> trials(n_prompts);
  for (size_t p = 0; p < n_prompts; ++p) {
    trials[p].target = state.targets[p];
    trials[p].rows = state.requested_rows(p);
    trials[p].baseline = state.rows[p][0];
    trials[p].baseline.effects.clear();
  }
  return trials;
}

/// Computes every prompt but its last token for every row. What rows have in common, up to the first token
/// that one of them edits, is computed once: a row leaves the baseline's sequence where it becomes another
/// one. (Part of a sequence could not be copied later: recurrent and sliding memories have forgotten it.)
void Passes::prefill(SweepState& state, size_t first_prompt, size_t n_prompts, const CancelToken& cancel) {
  TokenBatch batch(n_batch_);
  BatchEdits edits;
  const size_t most_outputs = rows_by_logits(model_->info().n_vocab);
  size_t outputs = 0;
  const auto flush = [&] {
    if (batch.size() > 0) run_edited(batch, edits, cancel);
    batch.clear();
    edits.clear();
    outputs = 0;
  };
  const auto sequence_of = [&](size_t prompt, size_t row) {
    return static_cast<llama_seq_id>((prompt - first_prompt) * state.rows_a_prompt() + row);
  };
  const auto compute = [&](size_t prompt, size_t row, size_t from, size_t to) {
    if (!stream_.packs_sequences) flush();
    for (size_t i = from; i < to; ++i) {
      const auto position = static_cast<uint32_t>(i);
      state.add_edits(edits, prompt, row, batch.size(), position);
      const bool output = state.needs_output(prompt, row, position);
      batch.add(state.request.prompts[prompt][i], position, sequence_of(prompt, row), output);
      outputs += output ? 1 : 0;
      if (batch.size() == n_batch_ || outputs == most_outputs) flush();
    }
  };
  const size_t end_prompt = first_prompt + n_prompts;
  // Where rows leave, prompt by prompt: the k-th places of all prompts are reached in common batches.
  std::vector<std::vector<size_t>> leaves(n_prompts);
  size_t rounds = 0;
  for (size_t p = 0; p < n_prompts; ++p) {
    for (size_t row = 0; row < state.rows_a_prompt(); ++row)
      leaves[p].push_back(state.shared(first_prompt + p, row));
    std::sort(leaves[p].begin(), leaves[p].end());
    leaves[p].erase(std::unique(leaves[p].begin(), leaves[p].end()), leaves[p].end());
    rounds = std::max(rounds, leaves[p].size());
  }
  llama_memory_t memory = llama_get_memory(ctx_);
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t p = 0; p < n_prompts; ++p) {
      if (round >= leaves[p].size()) continue;
      compute(first_prompt + p, 0, round == 0 ? 0 : leaves[p][round - 1], leaves[p][round]);
    }
    flush();
    for (size_t p = 0; p < n_prompts; ++p) {
      if (round >= leaves[p].size()) continue;
      const size_t prompt = first_prompt + p;
      for (size_t row = 1; row < state.rows_a_prompt(); ++row) {
        if (state.shared(prompt, row) != leaves[p][round]) continue;
        llama_memory_seq_cp(memory, sequence_of(prompt, 0), sequence_of(prompt, row), -1, -1);
      }
    }
  }
  for (size_t prompt = first_prompt; prompt < end_prompt; ++prompt) {
    for (size_t row = 1; row < state.rows_a_prompt(); ++row)
      compute(prompt, row, state.shared(prompt, row), state.before_last(prompt));
  }
  flush();
}

void Passes::sweep_chunk(SweepState& state, size_t first_prompt, size_t n_prompts,
                         const CancelToken& cancel) {
  clear_memory();
  prefill(state, first_prompt, n_prompts, cancel);
  std::vector<LiveRow> live;
  for (size_t p = 0; p < n_prompts; ++p) {
    for (size_t row = 0; row < state.rows_a_prompt(); ++row) {
      live.push_back(
          state.begin(first_prompt + p, row, static_cast<llama_seq_id>(p * state.rows_a_prompt() + row)));
    }
  }
  const size_t rows = live.size();
  generate(state, std::move(live), cancel);
  if (rows == 1) return;
  // Where an architecture multiplies what a row must not see by zero, one row's NaN is its neighbours', too.
  // So a row counts as broken only once it was so alone, in a memory without any other row's numbers.
  for (size_t prompt = first_prompt; prompt < first_prompt + n_prompts; ++prompt) {
    // Without the baseline, the others did not know their target.
    const bool all = !state.rows[prompt][0].finite;
    for (size_t row = 0; row < state.rows_a_prompt(); ++row) {
      if (all || !state.rows[prompt][row].finite) sweep_alone(state, prompt, row, cancel);
    }
  }
}

/// Computes one row from the beginning of its prompt, without sharing anything.
void Passes::sweep_alone(SweepState& state, size_t prompt, size_t row, const CancelToken& cancel) {
  SweepRow& out = state.rows[prompt][row];
  out = {};
  out.effects.resize(state.plan_of(row).size());
  clear_memory();
  TokenBatch batch(n_batch_);
  BatchEdits edits;
  const size_t end = state.before_last(prompt);
  const size_t most_outputs = rows_by_logits(model_->info().n_vocab);
  size_t outputs = 0;
  for (size_t i = 0; i < end; ++i) {
    const auto position = static_cast<uint32_t>(i);
    const bool output = state.needs_output(prompt, row, position);
    state.add_edits(edits, prompt, row, batch.size(), position);
    batch.add(state.request.prompts[prompt][i], position, 0, output);
    outputs += output ? 1 : 0;
    if (batch.size() < n_batch_ && outputs < most_outputs && i + 1 < end) continue;
    run_edited(batch, edits, cancel);
    batch.clear();
    edits.clear();
    outputs = 0;
  }
  generate(state, {state.begin(prompt, row, 0)}, cancel);
}

/// Generates all rows in lockstep, each behind its prompt.
void Passes::generate(SweepState& state, std::vector<LiveRow> live, const CancelToken& cancel) {
  const SweepRequest& request = state.request;
  const int n_vocab = model_->info().n_vocab;
  // One row a batch is slow, and right where llama.cpp mixes sequences up.
  const size_t most = stream_.packs_sequences ? live.size() : 1;
  TokenBatch batch(most);
  BatchEdits edits;
  while (!live.empty()) {
    std::vector<LiveRow> next;
    for (size_t first = 0; first < live.size(); first += most) {
      const size_t count = std::min(most, live.size() - first);
      batch.clear();
      edits.clear();
      for (size_t i = 0; i < count; ++i) {
        const LiveRow& row = live[first + i];
        batch.add(row.token, row.position, row.sequence, /*output=*/true);
        state.add_edits(edits, row.trial, row.row, i, row.position);
      }
      run_edited(batch, edits, cancel);
      state.advanced(count);

      for (size_t i = 0; i < count; ++i) {
        LiveRow row = live[first + i];
        const float* logits = llama_get_logits_ith(ctx_, static_cast<int32_t>(i));
        if (logits == nullptr)
          throw Error(ErrorCode::kUnsupportedArchitecture, "The model computes no logits.");
        SweepRow& out = state.rows[row.trial][row.row];
        const llama_token token = most_probable(logits, n_vocab);
        if (token < 0) {
          out.finite = false;
          doubtful_ = true;
          continue;
        }
        if (row.first) {
          // The baseline comes first among a prompt's rows, so its choice is known to the others.
          llama_token& target = state.targets[row.trial];
          if (target < 0 && row.row == 0) target = token;
          out.target_probability = target < 0
                                       ? std::numeric_limits<float>::quiet_NaN()
                                       : Softmax(logits, n_vocab, logits[token]).probability(logits[target]);
          row.first = false;
        }
        if (request.max_tokens <= 0 || llama_vocab_is_eog(model_->vocab(), token)) continue;
        out.continuation.push_back(token);
        if (out.continuation.size() >= static_cast<size_t>(request.max_tokens)) continue;
        row.token = token;
        ++row.position;
        next.push_back(row);
      }
    }
    live = std::move(next);
  }
}

}  // namespace tapline
