#include "experiment/tail_pass.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

namespace tapline {

namespace {

/// As many tokens as show whether a row depends on anything but its own middle.
constexpr size_t kCompared = 4;

struct Holds {
  bool value = false;
};

Place middle(const Passes& passes) {
  return {passes.info().n_layer - 1, Point::kMid};
}

/// Replaces a row to the bit, if it is finite.
Edit replacement(Place place, const std::vector<float>& row) {
  Edit edit;
  edit.layer = place.layer;
  edit.point = place.point;
  edit.scale = 0;
  edit.direction = std::make_shared<const Direction>(row);
  return edit;
}

std::vector<float> copy_logits(Passes& passes, size_t row) {
  const float* logits = passes.logits(row);
  return {logits, logits + passes.info().n_vocab};
}

bool compare(Passes& passes, const std::vector<llama_token>& text, const CancelToken& cancel) {
  const std::vector<llama_token> tokens(
      text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), kCompared)));
  const auto pass = [&](bool every_row, std::vector<TapPoint> points, const BlockTap::Sink& sink) {
    passes.clear_memory();
    TokenBatch batch(tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i)
      batch.add(tokens[i], static_cast<uint32_t>(i), 0, every_row || i + 1 == tokens.size());
    passes.run(batch, std::move(points), /*leave_early=*/every_row, sink, cancel);
  };
  pass(/*every_row=*/false, {}, nullptr);
  const std::vector<float> expected = copy_logits(passes, tokens.size() - 1);
  TailRow row;
  row.token = tokens.back();
  const Place place = middle(passes);
  pass(/*every_row=*/true, {{place.layer, /*read=*/true, nullptr, place.point}},
       [&](const TappedRows& tapped) {
         const float* last = tapped.values + (tapped.count - 1) * tapped.width;
         row.mid.assign(last, last + tapped.width);
       });
  run_tail(passes, {row}, {}, nullptr, cancel);
  const std::vector<float> found = copy_logits(passes, 0);
  passes.clear_memory();
  return std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)) == 0;
}

}  // namespace

void run_tail(Passes& passes, const std::vector<TailRow>& rows, const std::vector<Place>& read,
              const BlockTap::Sink& sink, const CancelToken& cancel) {
  passes.clear_memory();
  const Place place = middle(passes);
  TokenBatch batch(rows.size());
  std::vector<EditPlan> plans(rows.size());
  std::vector<std::vector<EditEffect>> effects(rows.size());  // counted in the pass over the whole texts
  BatchEdits edits;
  uint32_t position = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const TailRow& row = rows[i];
    plans[i].push_back(replacement(place, row.mid));
    for (const Edit& edit : row.edits == nullptr ? EditPlan{} : *row.edits) {
      if (edit.layer != place.layer || edit.point <= place.point) continue;
      if (edit.positions.contains(row.index, row.length)) plans[i].push_back(edit);
    }
    effects[i].resize(plans[i].size());
    edits.add(plans[i], effects[i], static_cast<int>(i), [](size_t) { return true; });
    position = i > 0 && rows[i - 1].sequence == row.sequence ? position + 1 : 0;
    batch.add(row.token, position, row.sequence, /*output=*/true);
  }
  std::map<Place, bool> reads;
  for (const auto& [edited, of_rows] : edits.by_place()) reads.emplace(edited, false);
  for (const Place& captured : read) reads[captured] = true;
  std::vector<TapPoint> points;
  for (const auto& [at, is_read] : reads)
    points.push_back({at.layer, is_read, edits.at(at), at.point, /*read_edited=*/true});
  passes.run(batch, std::move(points), /*leave_early=*/false, sink, cancel);
}

bool has_tail(Passes& passes, const std::vector<llama_token>& text, const CancelToken& cancel) {
  const auto find = [&] {
    const ResidualStream& stream = passes.stream();
    return Holds{passes.causal() && stream.side_path.empty() && !stream.heads_every_row &&
                 stream.points.at(Point::kMid).supported && compare(passes, text, cancel)};
  };
  return passes.once(find).value;
}

}  // namespace tapline
