#include "experiment/patch_sweep.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "experiment/context.h"
#include "experiment/token_batch.h"

namespace tapline {

/// What one of the two prompts does by itself.
struct Context::PatchRun {
  std::vector<llama_token> tokens;
  std::vector<float> states;  // [places, positions, n_embd], positions ascending
  std::vector<bool> seen;     // [places, positions]: rows that nothing reads are not computed
  std::vector<float> logits;  // after the last token
};

/// One row of the run that is changed, in a sequence of its own.
struct Context::PatchSite {
  enum class Change : uint8_t {
    kDonor,   // the other run's row in its place
    kRandom,  // as far as that one, in a random direction
    kOwn      // the run's own row, which changes nothing
  };
  size_t at = 0;  // in the run's [places, positions]
  Change change = Change::kDonor;
  double* answer = nullptr;
};

/// Everything that is known once both prompts have been computed.
struct Context::PatchPlan {
  PatchRun base;   // is patched
  PatchRun donor;  // its states are put in
  std::vector<Place> places;
  std::vector<int> positions;
  std::vector<std::shared_ptr<const Direction>> random;  // one a place, or none
  std::vector<double> lengths;                           // of the changes, [places, positions]
  llama_token target = -1;
  llama_token foil = -1;
  size_t width = 0;
  std::vector<PatchSite> sites;  // ascending by position

  int position_of(const PatchSite& site) const { return positions[site.at % positions.size()]; }
  Place place_of(const PatchSite& site) const { return places[site.at / positions.size()]; }
  const float* row(const PatchRun& run, size_t at) const { return run.states.data() + at * width; }
  size_t tokens_of(const PatchSite& site) const {
    return base.tokens.size() - static_cast<size_t>(position_of(site));
  }

  Edit edit_of(const PatchSite& site) const {
    Edit edit;
    edit.layer = place_of(site).layer;
    edit.point = place_of(site).point;
    if (site.change == PatchSite::Change::kRandom) {
      edit.direction = random[site.at / positions.size()];
      edit.unit = StrengthUnit::kUnit;
      edit.strength = static_cast<float>(lengths[site.at]);
      return edit;
    }
    const float* values = row(site.change == PatchSite::Change::kOwn ? base : donor, site.at);
    edit.scale = 0;
    edit.direction = std::make_shared<const Direction>(std::vector<float>(values, values + width));
    return edit;
  }
  double difference(const float* logits) const { return double(logits[target]) - logits[foil]; }
};

namespace {

/// Refuses duplicates and what a prompt of `n` tokens does not have; ascending.
std::vector<int> check_token_places(const std::vector<int>& positions, size_t n) {
  std::vector<int> sorted = positions;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] < 0 || static_cast<size_t>(sorted[i]) >= n) {
      throw Error(ErrorCode::kInvalidArgument, "Position " + std::to_string(sorted[i]) +
                                                   " does not exist; the prompts have " + std::to_string(n) +
                                                   " tokens, 0 to " + std::to_string(n - 1) + ".");
    }
    if (i > 0 && sorted[i] == sorted[i - 1])
      throw Error(ErrorCode::kInvalidArgument, "Position " + std::to_string(sorted[i]) + " is listed twice.");
  }
  return sorted;
}

/// For each entry of `asked`, its index in `sorted`.
std::vector<size_t> places_of(const std::vector<int>& asked, const std::vector<int>& sorted) {
  std::vector<size_t> places;
  for (const int one : asked) {
    places.push_back(
        static_cast<size_t>(std::lower_bound(sorted.begin(), sorted.end(), one) - sorted.begin()));
  }
  return places;
}

llama_token most_likely(const std::vector<float>& logits) {
  return static_cast<llama_token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace

/// Computes a prompt in one pass, whose logits are the same bits as those of any pass that captures nothing.
Context::PatchRun Context::patch_run(const std::vector<llama_token>& tokens, const std::vector<Place>& places,
                                     const std::vector<int>& positions, const CancelToken& cancel) {
  const auto width = static_cast<size_t>(model_->info().n_embd);
  PatchRun run{tokens,
               std::vector<float>(places.size() * positions.size() * width),
               std::vector<bool>(places.size() * positions.size(), false),
               {}};
  std::vector<TapPoint> points;
  std::set<Place> met;
  for (const Place& place : places) met.insert(place.met());
  for (const Place& place : met) points.push_back({place.layer, /*read=*/true, nullptr, place.point});
  const auto keep = [&](size_t place, const TappedRows& tapped) {
    for (size_t row = 0; row < tapped.count; ++row) {
      const int index = (*tapped.indices)[row];
      const auto found = std::lower_bound(positions.begin(), positions.end(), index);
      if (found == positions.end() || *found != index) continue;
      const size_t at = place * positions.size() + static_cast<size_t>(found - positions.begin());
      std::copy_n(tapped.values + row * width, width, run.states.data() + at * width);
      run.seen[at] = true;
    }
  };
  const auto sink = [&](const TappedRows& tapped) {
    for (size_t place = 0; place < places.size(); ++place) {
      if (places[place].met() == tapped.place()) keep(place, tapped);
    }
  };
  TokenBatch batch(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i)
    batch.add(tokens[i], static_cast<uint32_t>(i), 0, i + 1 == tokens.size() || stream_.heads_every_row);
  run_tapped(batch, std::move(points), /*leave_early=*/false, sink, cancel);
  const float* logits = llama_get_logits_ith(ctx_, static_cast<int32_t>(tokens.size()) - 1);
  if (logits == nullptr) throw Error(ErrorCode::kUnsupportedArchitecture, "The model computes no logits.");
  run.logits.assign(logits, logits + model_->info().n_vocab);
  return run;
}

/// Whether the memory still has every cell of a sequence's beginning when its end has been computed.
bool Context::shares_prefixes(size_t n_tokens) const {
  const ModelInfo& info = model_->info();
  return !info.hybrid && !info.recurrent && (info.n_swa == 0 || n_tokens <= static_cast<size_t>(info.n_swa));
}

/// Computes the sites in batches: each is a sequence that has the run's K/V up to its position and goes on
/// alone from there.
void Context::patch_sites(const PatchPlan& plan, const CancelToken& cancel,
                          const std::function<void(size_t)>& advanced) {
  const std::vector<llama_token>& tokens = plan.base.tokens;
  const size_t n = tokens.size();
  const size_t most_rows = std::min<size_t>(n_batch_, n_ctx_ - n);
  const size_t most_sites = stream_.packs_sequences ? n_seq_max_ - 1 : 1;
  const bool partly = shares_prefixes(n);
  llama_memory_t memory = llama_get_memory(ctx_);
  size_t there = n;  // tokens of the run that the memory holds
  if (!partly) {
    // Recurrent states and sliding windows have forgotten the beginning, so the run is computed once more,
    // up to each position in turn.
    clear_memory();
    doubtful_ = true;
    there = 0;
  }
  TokenBatch batch(most_rows);
  for (size_t first = 0; first < plan.sites.size();) {
    const int from = plan.position_of(plan.sites[first]);
    if (there < static_cast<size_t>(from)) {
      batch.clear();
      for (; there < static_cast<size_t>(from); ++there)
        batch.add(tokens[there], static_cast<uint32_t>(there), 0, /*output=*/false);
      run_edited(batch, {}, cancel);
    }
    batch.clear();
    BatchEdits edits;
    std::vector<EditPlan> plans(most_sites);
    std::vector<std::vector<EditEffect>> effects(most_sites, std::vector<EditEffect>(1));
    std::vector<int32_t> answers;  // the batch's rows that tell each site's logits
    while (answers.size() < most_sites && first + answers.size() < plan.sites.size()) {
      const size_t count = answers.size();
      const PatchSite& site = plan.sites[first + count];
      const int position = plan.position_of(site);
      if (batch.size() + plan.tokens_of(site) > most_rows || (!partly && position != from)) break;
      const auto sequence = static_cast<llama_seq_id>(1 + count);
      // ggml rounds a batch of one row more coarsely than any other (activations in F16, outside llamafile's
      // kernels), so a row that would be alone takes the one before it along.
      const bool alone = plan.tokens_of(site) == 1 && batch.size() == 0 &&
                         (most_sites == 1 || first + 1 == plan.sites.size());
      const int begin = alone && partly && position > 0 && most_rows > 1 ? position - 1 : position;
      if (begin > 0) llama_memory_seq_cp(memory, 0, sequence, partly ? 0 : -1, partly ? begin : -1);
      plans[count].push_back(plan.edit_of(site));
      edits.add(plans[count], effects[count], static_cast<int>(batch.size()) + position - begin,
                [](size_t) { return true; });
      for (auto i = static_cast<size_t>(begin); i < n; ++i) {
        batch.add(tokens[i], static_cast<uint32_t>(i), sequence, i + 1 == n || stream_.heads_every_row);
      }
      answers.push_back(static_cast<int32_t>(batch.size()) - 1);
    }
    run_edited(batch, edits, cancel);
    for (size_t i = 0; i < answers.size(); ++i) {
      const PatchSite& site = plan.sites[first + i];
      const float* logits = llama_get_logits_ith(ctx_, answers[i]);
      if (logits == nullptr)
        throw Error(ErrorCode::kUnsupportedArchitecture, "The model computes no logits.");
      *site.answer = plan.difference(logits);
      llama_memory_seq_rm(memory, static_cast<llama_seq_id>(1 + i), -1, -1);
      if (std::isfinite(*site.answer)) continue;
      throw Error(ErrorCode::kCompute, "With " + plan.place_of(site).text(/*first_word=*/false) +
                                           " patched at token " + std::to_string(plan.position_of(site)) +
                                           " the model's logits are not finite.");
    }
    first += answers.size();
    advanced(first);
  }
}

void Context::check_patch_sweep(const PatchSweepRequest& request) const {
  const ModelInfo& info = model_->info();
  const size_t n = request.clean.size();
  if (!causal()) {
    throw Error(ErrorCode::kUnsupportedArchitecture,
                "The architecture '" + info.architecture + "' does not generate text token by token.");
  }
  check_tokens(request.clean);
  check_tokens(request.corrupted);
  if (n != request.corrupted.size()) {
    throw Error(ErrorCode::kInvalidArgument,
                "The clean prompt has " + std::to_string(n) + " tokens and the corrupted one " +
                    std::to_string(request.corrupted.size()) + "; positions need as many in both.");
  }
  if (n > n_batch_ || 2 * n > n_ctx_ || n_seq_max_ < 2) {
    throw Error(ErrorCode::kTokenLimit,
                "Patching prompts of " + std::to_string(n) + " tokens takes a context of " +
                    std::to_string(2 * n) + " and batches of " + std::to_string(n) +
                    " in two sequences or more; this one has " + std::to_string(n_ctx_) + ", " +
                    std::to_string(n_batch_) + " and " + std::to_string(n_seq_max_) + ".");
  }
  if (request.layers.empty() || request.points.empty() || request.positions.empty())
    throw Error(ErrorCode::kInvalidArgument, "A patch sweep needs layers, points and positions.");
  if (request.target >= info.n_vocab || request.foil >= info.n_vocab)
    throw Error(ErrorCode::kInvalidArgument, "A target token is outside the vocabulary.");
  const size_t wanted = request.layers.size() * request.points.size() * static_cast<size_t>(info.n_embd);
  if (!request.controls.empty() && request.controls.size() != wanted) {
    throw Error(ErrorCode::kInvalidArgument, "The control directions have " +
                                                 std::to_string(request.controls.size()) + " values; " +
                                                 std::to_string(wanted) + " are needed.");
  }
}

PatchSweepResult Context::patch_sweep(const PatchSweepRequest& request, const CancelToken& cancel,
                                      const std::function<void(size_t, size_t)>& progress) {
  const std::lock_guard<std::mutex> lock(mutex_);
  check_patch_sweep(request);
  PatchPlan plan;
  plan.width = static_cast<size_t>(model_->info().n_embd);
  for (const Point point : request.points) check_hidden(point);
  plan.places = check_places(request.layers, request.points);
  plan.positions = check_token_places(request.positions, request.clean.size());
  const auto run = [&](const std::vector<llama_token>& tokens) {
    clear_memory();
    doubtful_ = true;
    return patch_run(tokens, plan.places, plan.positions, cancel);
  };
  plan.donor = run(request.denoise ? request.clean : request.corrupted);
  plan.base = run(request.denoise ? request.corrupted : request.clean);  // stays in the memory

  const PatchRun& clean = request.denoise ? plan.donor : plan.base;
  const PatchRun& corrupted = request.denoise ? plan.base : plan.donor;
  PatchSweepResult result;
  plan.target = result.target = request.target >= 0 ? request.target : most_likely(clean.logits);
  plan.foil = result.foil = request.foil >= 0 ? request.foil : most_likely(corrupted.logits);
  result.clean = plan.difference(clean.logits.data());
  result.corrupted = plan.difference(corrupted.logits.data());
  if (!std::isfinite(result.clean) || !std::isfinite(result.corrupted))
    throw Error(ErrorCode::kCompute, "The model's logits are not finite; the model file may be damaged.");

  const double untouched = request.denoise ? result.corrupted : result.clean;
  const size_t all = plan.places.size() * plan.positions.size();
  std::vector<double> patched(all, untouched);
  std::vector<double> control(request.controls.empty() ? 0 : all, untouched);
  std::vector<double> rows(all, std::numeric_limits<double>::quiet_NaN());
  plan.lengths = rows;
  result.restored = untouched;
  for (size_t place = 0; !request.controls.empty() && place < plan.places.size(); ++place) {
    const float* values = request.controls.data() + place * plan.width;
    plan.random.push_back(std::make_shared<const Direction>(std::vector<float>(values, values + plan.width)));
  }
  add_sites(plan, patched, control, rows, result.restored);
  result.computed_sites = static_cast<int64_t>(plan.sites.size());
  for (const PatchSite& site : plan.sites)
    result.computed_tokens += static_cast<int64_t>(plan.tokens_of(site));
  if (!plan.sites.empty()) {
    patch_sites(plan, cancel, [&](size_t done) {
      if (progress) progress(done, plan.sites.size());
    });
  }
  clear_memory();

  const std::vector<size_t> position_places = places_of(request.positions, plan.positions);
  const auto as_asked = [&](const std::vector<double>& values) {
    std::vector<double> ordered;
    ordered.reserve(values.size());
    for (size_t first = 0; first < values.size(); first += plan.positions.size()) {
      for (const size_t at : position_places) ordered.push_back(values[first + at]);
    }
    return ordered;
  };
  result.patched = as_asked(patched);
  result.control = as_asked(control);
  result.change_length = as_asked(plan.lengths);
  result.row_length = as_asked(rows);
  return result;
}

/// What has to be computed: not where nothing reads a row (in the last block, before the last token), nor
/// where both runs have the same bits, which they do up to where the prompts part.
void Context::add_sites(PatchPlan& plan, std::vector<double>& patched, std::vector<double>& control,
                        std::vector<double>& rows, double& restored) const {
  const auto all_places = plan.places.size();
  for (size_t position = 0; position < plan.positions.size(); ++position) {
    for (size_t place = 0; place < all_places; ++place) {
      const size_t at = place * plan.positions.size() + position;
      if (!plan.base.seen[at] || !plan.donor.seen[at]) continue;
      const float* mine = plan.row(plan.base, at);
      const float* theirs = plan.row(plan.donor, at);
      std::vector<float> apart(plan.width);
      for (size_t i = 0; i < plan.width; ++i) apart[i] = theirs[i] - mine[i];
      plan.lengths[at] = row_length(apart.data(), plan.width);
      rows[at] = row_length(mine, plan.width);
      if (std::equal(mine, mine + plan.width, theirs)) continue;
      plan.sites.push_back({at, PatchSite::Change::kDonor, &patched[at]});
      if (!control.empty()) plan.sites.push_back({at, PatchSite::Change::kRandom, &control[at]});
    }
  }
  // One site more, of which the answer is known: the middle one of the first position that is computed, or
  // of the first at all.
  const size_t position = plan.sites.empty() ? 0 : plan.sites.front().at % plan.positions.size();
  const size_t at = (all_places - 1) / 2 * plan.positions.size() + position;
  if (plan.base.seen[at]) plan.sites.insert(plan.sites.begin(), {at, PatchSite::Change::kOwn, &restored});
}

}  // namespace tapline
