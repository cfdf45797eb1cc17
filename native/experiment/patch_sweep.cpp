#include "experiment/patch_sweep.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "experiment/checks.h"

namespace tapline {

namespace {

/// What one of the two prompts does by itself.
struct PatchRun {
  std::vector<llama_token> tokens;
  std::vector<int> positions;  // of the sites, in the order asked for
  std::vector<float> states;   // place by place, [positions, width of the place]
  std::vector<bool> seen;      // [places, positions]: rows that nothing reads are not computed
  std::vector<float> logits;   // after the last token
};

/// One row of the run that is changed, in a sequence of its own.
struct PatchSite {
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
struct PatchPlan {
  /// A place, which part of its rows is put in, and where the states of a run have it.
  struct Part {
    PatchPlace at;
    size_t begin = 0;
    size_t width = 0;
    size_t states = 0;
  };
  PatchRun base;   // is patched
  PatchRun donor;  // its states are put in
  std::vector<Part> parts;
  size_t positions = 0;                                  // how many
  size_t numbers = 0;                                    // of a run's states
  std::vector<std::shared_ptr<const Direction>> random;  // one a place, or none
  std::vector<PatchSite> sites;                          // ascending by position
  PatchSweepResult result;

  int position_of(const PatchSite& site) const { return base.positions[site.at % positions]; }
  const Part& part_of(size_t at) const { return parts[at / positions]; }
  const float* row(const PatchRun& run, size_t at) const {
    const Part& part = part_of(at);
    return run.states.data() + part.states + at % positions * part.width;
  }
  size_t tokens_of(const PatchSite& site) const {
    return base.tokens.size() - static_cast<size_t>(position_of(site));
  }

  Edit edit_of(const PatchSite& site) const {
    const Part& part = part_of(site.at);
    Edit edit;
    edit.layer = part.at.place.layer;
    edit.point = part.at.place.point;
    if (part.at.head >= 0) edit.heads = {part.at.head};
    if (site.change == PatchSite::Change::kRandom) {
      edit.direction = random[site.at / positions];
      edit.unit = StrengthUnit::kUnit;
      edit.strength = static_cast<float>(result.change_length[site.at]);
      return edit;
    }
    const float* values = row(site.change == PatchSite::Change::kOwn ? base : donor, site.at);
    edit.scale = 0;
    edit.direction = std::make_shared<const Direction>(std::vector<float>(values, values + part.width));
    return edit;
  }
  double difference(const float* logits) const { return double(logits[result.target]) - logits[result.foil]; }
};

void check_token_places(const std::vector<int>& positions, size_t n) {
  for (const int position : positions) {
    if (position >= 0 && static_cast<size_t>(position) < n) continue;
    throw_error(ErrorCode::kInvalidArgument, "Position ", position, " does not exist; the prompt has ", n,
                " tokens, 0 to ", n - 1, ".");
  }
  check_distinct(positions, [](int position) { return "Position " + std::to_string(position); });
}

llama_token most_likely(const std::vector<float>& logits) {
  return static_cast<llama_token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// Computes a prompt in one pass, whose logits are the same bits as those of any pass that captures nothing.
void compute_run(Passes& passes, PatchRun& run, const PatchPlan& plan, const CancelToken& cancel) {
  passes.clear_memory();
  passes.taint();
  run.states.assign(plan.numbers, 0);
  run.seen.assign(plan.parts.size() * plan.positions, false);
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  std::vector<size_t> column_of(run.tokens.size(), kNone);
  for (size_t column = 0; column < run.positions.size(); ++column)
    column_of[static_cast<size_t>(run.positions[column])] = column;
  // What the last block computes for a token whose output is not computed reaches nothing.
  const Place end{passes.info().n_layer - 1};
  std::vector<bool> read(plan.positions, false);
  const auto within_last = [&](const Place& place) {
    return place.layer == end.layer && place.point != Point::kBlockIn && !(place == end);
  };
  std::map<Place, std::vector<size_t>> parts_at;  // by the places where tensors are computed
  for (size_t part = 0; part < plan.parts.size(); ++part) {
    const Place& place = plan.parts[part].at.place;
    parts_at[place.computed_at()].push_back(part);
    if (within_last(place)) parts_at[end];
  }
  std::vector<TapPoint> points;
  for (const auto& [place, parts] : parts_at)
    points.push_back({place.layer, /*read=*/true, nullptr, place.point});
  const auto sink = [&](const TappedRows& tapped) {
    for (size_t row = 0; row < tapped.count; ++row) {
      const size_t column = column_of[static_cast<size_t>((*tapped.indices)[row])];
      if (column == kNone) continue;
      if (tapped.place() == end) read[column] = true;
      for (const size_t place : parts_at.at(tapped.place())) {
        const PatchPlan::Part& part = plan.parts[place];
        std::copy_n(tapped.values + row * tapped.width + part.begin, part.width,
                    run.states.data() + part.states + column * part.width);
        run.seen[place * plan.positions + column] = true;
      }
    }
  };
  const size_t n = run.tokens.size();
  TokenBatch batch(n);
  passes.add(batch, run.tokens.data(), n, 0, 0, /*answer=*/true);
  passes.run(batch, std::move(points), /*leave_early=*/false, sink, cancel);
  for (size_t at = 0; at < run.seen.size(); ++at) {
    if (within_last(plan.part_of(at).at.place) && !read[at % plan.positions]) run.seen[at] = false;
  }
  const float* logits = passes.logits(n - 1);
  run.logits.assign(logits, logits + passes.info().n_vocab);
}

/// Computes the sites in batches: each is a sequence that has the run's K/V up to its position and goes on
/// alone from there.
void compute_sites(Passes& passes, const PatchPlan& plan, const CancelToken& cancel,
                   const PatchProgress& progress) {
  const std::vector<llama_token>& tokens = plan.base.tokens;
  const size_t n = tokens.size();
  const size_t most_rows = std::min<size_t>(passes.n_batch(), passes.n_ctx() - n);
  const size_t most_sites = passes.stream().packs_sequences ? passes.n_seq_max() - 1 : 1;
  const bool partly = passes.keeps_beginnings(n);
  llama_memory_t memory = passes.memory();
  size_t there = n;  // tokens of the run that the memory holds
  if (!partly) {
    // Recurrent states and sliding windows have forgotten the beginning, so the run is computed once more,
    // up to each position in turn.
    passes.clear_memory();
    passes.taint();
    there = 0;
  }
  TokenBatch batch(most_rows);
  for (size_t first = 0; first < plan.sites.size();) {
    const int from = plan.position_of(plan.sites[first]);
    if (there < static_cast<size_t>(from)) {
      batch.clear();
      passes.add(batch, &tokens[there], static_cast<size_t>(from) - there, there, 0, /*answer=*/false);
      passes.run(batch, {}, cancel);
      there = static_cast<size_t>(from);
    }
    batch.clear();
    BatchEdits edits;
    std::vector<EditPlan> plans(most_sites);
    std::vector<std::vector<EditEffect>> effects(most_sites, std::vector<EditEffect>(1));
    std::vector<size_t> answers;  // the batch's rows that have each site's logits
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
      const auto start = static_cast<size_t>(begin);
      passes.add(batch, &tokens[start], n - start, start, sequence, /*answer=*/true);
      answers.push_back(batch.size() - 1);
    }
    passes.run(batch, edits, cancel);
    for (size_t i = 0; i < answers.size(); ++i) {
      const PatchSite& site = plan.sites[first + i];
      *site.answer = plan.difference(passes.logits(answers[i]));
      llama_memory_seq_rm(memory, static_cast<llama_seq_id>(1 + i), -1, -1);
      if (std::isfinite(*site.answer)) continue;
      throw_error(ErrorCode::kCompute, "With ", plan.part_of(site.at).at.place.text(/*first_word=*/false),
                  " patched at token ", plan.position_of(site), " the model's logits are not finite.");
    }
    first += answers.size();
    progress(first, plan.sites.size(), [&] {
      PatchGrowth growth{plan.result.clean, plan.result.corrupted, plan.result.patched};
      for (size_t i = first; i < plan.sites.size(); ++i) {
        const PatchSite& site = plan.sites[i];
        if (site.change == PatchSite::Change::kDonor)
          growth.patched[site.at] = std::numeric_limits<double>::quiet_NaN();
      }
      return growth;
    });
  }
}

void check_request(const Passes& passes, const PatchSweepRequest& request) {
  const size_t n = std::max(request.clean.size(), request.corrupted.size());
  check_causal(passes);
  check_tokens(passes, request.clean);
  check_tokens(passes, request.corrupted);
  if (n > passes.n_batch() || 2 * n > passes.n_ctx() || passes.n_seq_max() < 2)
    throw_error(ErrorCode::kTokenLimit, "Patching prompts of ", n, " tokens takes a context of ", 2 * n,
                " and batches of ", n, " in two sequences or more; this one has ", passes.n_ctx(), ", ",
                passes.n_batch(), " and ", passes.n_seq_max(), ".");
  if (request.places.empty() || request.clean_positions.empty())
    throw Error(ErrorCode::kInvalidArgument, "A patch sweep needs layers, points and positions.");
  if (request.clean_positions.size() != request.corrupted_positions.size())
    throw Error(ErrorCode::kInvalidArgument, "A patch sweep needs as many positions in both prompts.");
  check_token_places(request.clean_positions, request.clean.size());
  check_token_places(request.corrupted_positions, request.corrupted.size());
  check_targets(passes, {request.target, request.foil});
}

/// Where the places are in rows and in states. Throws where the model has one of them not.
void plan_places(const Passes& passes, PatchPlan& plan, const std::vector<PatchPlace>& places) {
  std::set<PatchPlace> seen;
  for (const PatchPlace& at : places) {
    const Site& site = check_changeable(passes, at.place, {at.head});
    if (!seen.insert(at).second)
      throw_error(ErrorCode::kInvalidArgument, "What is patched lists ", at.place.text(false), " twice.");
    const auto [begin, width] = part_of_row(at.head, static_cast<size_t>(site.width), site.heads);
    plan.parts.push_back({at, begin, width, plan.numbers});
    plan.numbers += plan.positions * width;
  }
}

/// What has to be computed: not where nothing reads a row (in the last block, before the last token), nor
/// where both runs have the same bits, which they do up to where the prompts part.
void add_sites(PatchPlan& plan) {
  PatchSweepResult& result = plan.result;
  const size_t all_places = plan.parts.size();
  std::vector<size_t> ascending(plan.positions);
  std::iota(ascending.begin(), ascending.end(), size_t{0});
  std::sort(ascending.begin(), ascending.end(),
            [&](size_t a, size_t b) { return plan.base.positions[a] < plan.base.positions[b]; });
  for (const size_t position : ascending) {
    for (size_t place = 0; place < all_places; ++place) {
      const size_t at = place * plan.positions + position;
      if (!plan.base.seen[at] || !plan.donor.seen[at]) continue;
      const size_t width = plan.parts[place].width;
      const float* mine = plan.row(plan.base, at);
      const float* theirs = plan.row(plan.donor, at);
      std::vector<float> apart(width);
      for (size_t i = 0; i < width; ++i) apart[i] = theirs[i] - mine[i];
      result.change_length[at] = row_length(apart.data(), width);
      result.row_length[at] = row_length(mine, width);
      if (std::equal(mine, mine + width, theirs)) continue;
      plan.sites.push_back({at, PatchSite::Change::kDonor, &result.patched[at]});
      if (!result.control.empty())
        plan.sites.push_back({at, PatchSite::Change::kRandom, &result.control[at]});
    }
  }
  // One site more, of which the answer is known: the middle one of the first position that is computed, or
  // of the first at all; if nothing reads that row, the next one that is read.
  const size_t position = plan.sites.empty() ? ascending.front() : plan.sites.front().at % plan.positions;
  for (size_t shift = 0; shift < all_places; ++shift) {
    const size_t at = ((all_places - 1) / 2 + shift) % all_places * plan.positions + position;
    if (!plan.base.seen[at]) continue;
    plan.sites.insert(plan.sites.begin(), {at, PatchSite::Change::kOwn, &result.restored});
    result.restored_tokens = static_cast<int64_t>(plan.tokens_of(plan.sites.front()));
    break;
  }
}

}  // namespace

PatchSweepResult patch_sweep(Passes& passes, const PatchSweepRequest& request, const CancelToken& cancel,
                             const PatchProgress& progress) {
  const auto locked = passes.lock();
  check_request(passes, request);
  PatchPlan plan;
  plan.positions = request.clean_positions.size();
  plan_places(passes, plan, request.places);
  const size_t wanted = plan.numbers / plan.positions;
  if (!request.controls.empty() && request.controls.size() != wanted)
    throw_error(ErrorCode::kInvalidArgument, "The control directions have ", request.controls.size(),
                " values; ", wanted, " are needed.");
  PatchRun& clean = request.denoise ? plan.donor : plan.base;
  PatchRun& corrupted = request.denoise ? plan.base : plan.donor;
  clean.tokens = request.clean;
  clean.positions = request.clean_positions;
  corrupted.tokens = request.corrupted;
  corrupted.positions = request.corrupted_positions;
  const Passes::ClearAtEnd clear{passes};
  compute_run(passes, plan.donor, plan, cancel);
  compute_run(passes, plan.base, plan, cancel);  // stays in the memory

  PatchSweepResult& result = plan.result;
  result.target = request.target >= 0 ? request.target : most_likely(clean.logits);
  result.foil = request.foil >= 0 ? request.foil : most_likely(corrupted.logits);
  result.clean = plan.difference(clean.logits.data());
  result.corrupted = plan.difference(corrupted.logits.data());
  if (!std::isfinite(result.clean) || !std::isfinite(result.corrupted))
    throw Error(ErrorCode::kCompute, "The model's logits are not finite; the model file may be damaged.");

  const double untouched = request.denoise ? result.corrupted : result.clean;
  const size_t all = plan.parts.size() * plan.positions;
  result.patched.assign(all, untouched);
  result.control.assign(request.controls.empty() ? 0 : all, untouched);
  result.row_length.assign(all, std::numeric_limits<double>::quiet_NaN());
  result.change_length = result.row_length;
  result.restored = untouched;
  for (const PatchPlan::Part& part : plan.parts) {
    if (request.controls.empty()) break;
    const float* values = request.controls.data() + part.states / plan.positions;
    plan.random.push_back(std::make_shared<const Direction>(std::vector<float>(values, values + part.width)));
  }
  add_sites(plan);
  result.computed_sites = static_cast<int64_t>(plan.sites.size());
  for (const PatchSite& site : plan.sites)
    result.computed_tokens += static_cast<int64_t>(plan.tokens_of(site));
  if (!plan.sites.empty()) compute_sites(passes, plan, cancel, progress);
  return std::move(result);
}

}  // namespace tapline
