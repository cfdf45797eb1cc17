#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "experiment/context.h"
#include "experiment/token_batch.h"

namespace tapline {

namespace {

/// Rows generated at once: their logits stay within 64 MiB, and more rows than this gain nothing.
size_t rows_at_once(int n_vocab, uint32_t n_seq_max, uint32_t n_batch) {
  const size_t by_logits = std::max<size_t>(16, (16U << 20U) / static_cast<size_t>(std::max(1, n_vocab)));
  return std::min({by_logits, size_t{128}, size_t{n_seq_max}, size_t{n_batch}});
}

/// The highest logit's token, the first of equals; -1 where a logit is NaN or plus infinity. (Some models
/// give minus infinity to what cannot be said.)
llama_token most_probable(const float* logits, int n_vocab) {
  // Independent lanes, which the compiler makes vectors of: as one chain of comparisons, ten rows of a large
  // vocabulary would take a percent of a step.
  constexpr int kLanes = 32;
  float highest[kLanes];
  int numbers[kLanes];
  std::fill_n(highest, kLanes, -std::numeric_limits<float>::infinity());
  std::fill_n(numbers, kLanes, 1);
  const auto see = [&](float logit, int lane) {
    highest[lane] = logit > highest[lane] ? logit : highest[lane];
    numbers[lane] &= logit <= std::numeric_limits<float>::max() ? 1 : 0;
  };
  int i = 0;
  for (; i + kLanes <= n_vocab; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) see(logits[i + lane], lane);
  }
  for (; i < n_vocab; ++i) see(logits[i], 0);
  const float most = *std::max_element(highest, highest + kLanes);
  if (!std::isfinite(most) || std::find(numbers, numbers + kLanes, 0) != numbers + kLanes) return -1;
  return static_cast<llama_token>(std::find(logits, logits + n_vocab, most) - logits);
}

float probability(const float* logits, int n_vocab, llama_token token, float highest) {
  double sum = 0;
  for (int i = 0; i < n_vocab; ++i) sum += std::exp(logits[i] - highest);
  return static_cast<float>(std::exp(double(logits[token] - highest)) / sum);
}

/// One sequence that is being generated.
struct LiveRow {
  size_t trial = 0;
  size_t edit = 0;  // 0 is the baseline, e is distinct edit e - 1
  llama_seq_id sequence = 0;
  llama_token token = 0;  // computed next
  uint32_t position = 0;
  bool first = true;
};

}  // namespace

bool SweepEdit::neutral() const {
  return scale == 1.0F &&
         std::all_of(offset.begin(), offset.end(), [](float value) { return value == 0.0F; });
}

/// The edits that really have to be computed, and what every prompt did under each of them.
struct Context::SweepState {
  const SweepRequest& request;
  std::vector<const SweepEdit*> distinct;
  std::vector<size_t> row_of;  // for each requested edit, 0 for the baseline or 1 + index in `distinct`
  std::vector<llama_token> targets;
  std::vector<std::vector<SweepRow>> rows;  // [prompt][1 + distinct]
  std::function<void(size_t)> advanced;     // counts computed positions

  explicit SweepState(const SweepRequest& all) : request(all), targets(all.targets) {
    for (const SweepEdit& edit : all.edits) {
      size_t row = 0;
      if (!edit.neutral()) {
        const auto same = std::find_if(distinct.begin(), distinct.end(), [&](const SweepEdit* other) {
          return other->scale == edit.scale && other->offset == edit.offset;
        });
        row = 1 + static_cast<size_t>(same - distinct.begin());
        if (same == distinct.end()) distinct.push_back(&edit);
      }
      row_of.push_back(row);
    }
    targets.resize(all.prompts.size(), -1);
    rows.assign(all.prompts.size(), std::vector<SweepRow>(1 + distinct.size()));
  }

  size_t rows_a_prompt() const { return 1 + distinct.size(); }
  /// Cells of the K/V cache that a prompt with all its continuations takes.
  size_t cells(size_t prompt) const {
    return request.prompts[prompt].size() + rows_a_prompt() * static_cast<size_t>(request.max_tokens);
  }
};

std::vector<SweepTrial> Context::sweep(const SweepRequest& request, const CancelToken& cancel,
                                       const std::function<void(size_t, size_t)>& progress) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const ModelInfo& info = model_->info();
  check_layers({request.layer});
  if (llama_get_memory(ctx_) == nullptr) {
    throw Error(ErrorCode::kUnsupportedArchitecture,
                "The architecture '" + info.architecture + "' does not generate text token by token.");
  }
  for (const auto& prompt : request.prompts) check_tokens(prompt);
  for (const llama_token target : request.targets) {
    if (target >= info.n_vocab)
      throw Error(ErrorCode::kInvalidArgument, "A target token is outside the vocabulary.");
  }
  for (const SweepEdit& edit : request.edits) {
    if (!edit.offset.empty() && edit.offset.size() != static_cast<size_t>(info.n_embd)) {
      throw Error(ErrorCode::kInvalidArgument, "An edit's vector has " + std::to_string(edit.offset.size()) +
                                                   " values; the hidden size is " +
                                                   std::to_string(info.n_embd) + ".");
    }
  }

  SweepState state(request);
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
    throw Error(ErrorCode::kInvalidArgument, "A prompt with " + std::to_string(request.edits.size()) +
                                                 " edits needs " + std::to_string(state.rows_a_prompt()) +
                                                 " sequences; this context computes " +
                                                 std::to_string(most_rows) + " at once.");
  }
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
  clear_memory();

  std::vector<SweepTrial> trials(n_prompts);
  for (size_t p = 0; p < n_prompts; ++p) {
    trials[p].target = state.targets[p];
    trials[p].baseline = state.rows[p][0];
    for (const size_t row : state.row_of) trials[p].rows.push_back(state.rows[p][row]);
  }
  return trials;
}

/// Computes every prompt but its last token, which is where the edits begin.
void Context::prefill(const SweepState& state, size_t first_prompt, size_t n_prompts,
                      const CancelToken& cancel) {
  TokenBatch batch(n_batch_);
  const auto flush = [&] {
    if (batch.size() > 0) decode(batch, cancel);
    batch.clear();
  };
  for (size_t p = 0; p < n_prompts; ++p) {
    if (!stream_.packs_sequences) flush();
    const auto& tokens = state.request.prompts[first_prompt + p];
    const auto sequence = static_cast<llama_seq_id>(p * state.rows_a_prompt());
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      batch.add(tokens[i], static_cast<uint32_t>(i), sequence, /*output=*/false);
      if (batch.size() == n_batch_) flush();
    }
  }
  flush();
  llama_memory_t memory = llama_get_memory(ctx_);
  for (size_t p = 0; p < n_prompts; ++p) {
    const auto base = static_cast<llama_seq_id>(p * state.rows_a_prompt());
    for (size_t row = 1; row < state.rows_a_prompt(); ++row) {
      llama_memory_seq_cp(memory, base, base + static_cast<llama_seq_id>(row), -1, -1);
    }
  }
}

void Context::sweep_chunk(SweepState& state, size_t first_prompt, size_t n_prompts,
                          const CancelToken& cancel) {
  const SweepRequest& request = state.request;
  const int n_vocab = model_->info().n_vocab;
  clear_memory();
  try {
    prefill(state, first_prompt, n_prompts, cancel);
  } catch (...) {
    clear_memory();
    throw;
  }

  std::vector<LiveRow> live;
  for (size_t p = 0; p < n_prompts; ++p) {
    const auto& tokens = request.prompts[first_prompt + p];
    for (size_t e = 0; e < state.rows_a_prompt(); ++e) {
      live.push_back({first_prompt + p, e, static_cast<llama_seq_id>(p * state.rows_a_prompt() + e),
                      tokens.back(), static_cast<uint32_t>(tokens.size() - 1), true});
    }
  }

  // One row a batch is slow, and right where llama.cpp mixes sequences up.
  const size_t most = stream_.packs_sequences ? live.size() : 1;
  TokenBatch batch(most);
  while (!live.empty()) {
    std::vector<LiveRow> next;
    for (size_t first = 0; first < live.size(); first += most) {
      const size_t count = std::min(most, live.size() - first);
      batch.clear();
      std::vector<RowEdit> edits;
      for (size_t i = 0; i < count; ++i) {
        const LiveRow& row = live[first + i];
        batch.add(row.token, row.position, row.sequence, /*output=*/true);
        if (row.edit > 0) {
          const SweepEdit& edit = *state.distinct[row.edit - 1];
          edits.push_back({static_cast<int>(i), edit.scale, edit.offset});
        }
      }
      run_tapped(batch, {{request.layer, /*read=*/false, &edits}}, /*leave_early=*/false, nullptr, cancel);
      state.advanced(count);

      for (size_t i = 0; i < count; ++i) {
        LiveRow row = live[first + i];
        const float* logits = llama_get_logits_ith(ctx_, static_cast<int32_t>(i));
        if (logits == nullptr)
          throw Error(ErrorCode::kUnsupportedArchitecture, "The model computes no logits.");
        SweepRow& out = state.rows[row.trial][row.edit];
        const llama_token token = most_probable(logits, n_vocab);
        if (token < 0) {
          out.finite = false;
          continue;
        }
        if (row.first) {
          // The baseline comes first among a prompt's rows, so its choice is known to the others.
          llama_token& target = state.targets[row.trial];
          if (target < 0) target = token;
          out.target_probability = probability(logits, n_vocab, target, logits[token]);
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
