#include "experiment/forward_results.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "experiment/checks.h"

namespace tapline {

namespace {

/// Token indices of a sequence, which count from its end if they are negative.
std::vector<size_t> resolve(const std::vector<int32_t>& positions, size_t tokens, size_t sequence) {
  std::vector<size_t> found;
  for (const int32_t position : positions) {
    const int64_t index = position < 0 ? static_cast<int64_t>(tokens) + position : position;
    if (index < 0 || index >= static_cast<int64_t>(tokens))
      throw_error(ErrorCode::kInvalidArgument, "Position ", position, " does not exist in sequence ",
                  sequence, ", which has ", tokens, " tokens.");
    found.push_back(static_cast<size_t>(index));
  }
  check_distinct(found, [](size_t index) { return "Position " + std::to_string(index); });
  return found;
}

void shorten(std::vector<float>& values, std::vector<uint16_t>& halves) {
  static_assert(sizeof(ggml_fp16_t) == sizeof(uint16_t));
  halves.resize(values.size());
  ggml_fp32_to_fp16_row(values.data(), halves.data(), static_cast<int64_t>(values.size()));
  std::vector<float>().swap(values);
}

}  // namespace

void fail_not_finite(const std::string& what, const ForwardPart& part, size_t token) {
  throw ForwardNotFinite{what + " at token " + std::to_string(token) + " of sequence " +
                         std::to_string(part.sequence)};
}

const ForwardPart& part_of(const std::vector<ForwardPart>& parts, size_t batch_index) {
  const auto after = std::upper_bound(parts.begin(), parts.end(), batch_index,
                                      [](size_t at, const ForwardPart& part) { return at < part.row; });
  return *(after - 1);
}

ForwardResults::ForwardResults(const Passes& passes, const ForwardRequest& request)
    : request_(request), n_vocab_(static_cast<size_t>(passes.info().n_vocab)) {
  const auto tokens = [&](size_t i) -> const std::vector<llama_token>& {
    return request.sequences[i].tokens;
  };
  const auto make = [&](std::vector<Rows>& rows, const auto& wanted) {
    size_t count = 0;
    for (size_t i = 0; i < request.sequences.size(); ++i) {
      Rows of{count, std::vector<size_t>(tokens(i).size(), kNowhere)};
      size_t at = 0;
      for (const size_t token : wanted(i)) of.of_token[token] = at++;
      count += at;
      rows.push_back(std::move(of));
    }
    return count;
  };
  const auto every = [&](size_t i) {
    std::vector<size_t> all(tokens(i).size());
    for (size_t token = 0; token < all.size(); ++token) all[token] = token;
    return all;
  };
  const size_t captured = make(rows_, [&](size_t i) {
    return request.positions.empty() ? every(i) : resolve(request.positions, tokens(i).size(), i);
  });
  const size_t with_logits = make(logit_rows_, [&](size_t i) {
    if (request.logits == ForwardLogits::kAll) return every(i);
    if (request.logits == ForwardLogits::kLast) return std::vector<size_t>{tokens(i).size() - 1};
    return resolve(request.logit_positions, tokens(i).size(), i);
  });
  std::vector<size_t> sizes{with_logits * n_vocab_};
  for (const Place& place : request.captures) {
    const Site& site = passes.stream().points.site(place);
    ForwardCapture capture;
    capture.place = place;
    if (place.is_vector()) capture.width = static_cast<size_t>(site.width);
    if (place.point == Point::kHeadOut || !place.is_vector()) capture.heads = static_cast<size_t>(site.heads);
    sizes.push_back(captured * capture.width);
    for (size_t i = 0; i < request.sequences.size() && !place.is_vector(); ++i)
      sizes.back() += capture.heads * tokens(i).size() * tokens(i).size();
    result_.captures.push_back(std::move(capture));
  }
  const size_t width = request.half ? sizeof(uint16_t) : sizeof(float);
  const size_t bytes = std::accumulate(sizes.begin(), sizes.end(), size_t{0}) * width;
  if (bytes > request.max_bytes)
    throw_error(ErrorCode::kTokenLimit, "The result would have ", bytes, " bytes; at most ",
                request.max_bytes, " are possible in one call.");
  result_.logits.resize(sizes[0]);
  for (size_t i = 0; i < result_.captures.size(); ++i) result_.captures[i].values.resize(sizes[i + 1]);
  for (const ForwardSequence& sequence : request.sequences)
    result_.effects.emplace_back(sequence.edits.size());
}

void ForwardResults::expect(const std::vector<ForwardPart>& parts, size_t batch_rows) {
  size_t rows = 0;
  for (const ForwardPart& part : parts) {
    for (size_t token = part.begin; token < part.end; ++token)
      rows += rows_[part.sequence].at(token) == kNowhere ? 0 : 1;
  }
  left_.clear();
  for (const Place& place : request_.captures) left_.push_back(place.is_vector() ? rows : 0);
  taken_.assign(request_.captures.size(), std::vector<bool>(batch_rows));
}

bool ForwardResults::lacks() const {
  return std::any_of(left_.begin(), left_.end(), [](size_t rows) { return rows > 0; });
}

bool ForwardResults::lacks_at(Place computed) const {
  for (size_t i = 0; i < left_.size(); ++i) {
    if (left_[i] > 0 && request_.captures[i].computed_at() == computed) return true;
  }
  return false;
}

void ForwardResults::take(const TappedRows& tapped, size_t row, size_t index,
                          const std::vector<ForwardPart>& parts) {
  const ForwardPart& part = part_of(parts, index);
  const size_t token = part.begin + index - part.row;
  const size_t target = rows_[part.sequence].at(token);
  if (target == kNowhere) return;
  for (size_t i = 0; i < request_.captures.size(); ++i) {
    // A second pass computes the rows of the first one again.
    if (left_[i] == 0 || !(request_.captures[i].computed_at() == tapped.place()) || taken_[i][index])
      continue;
    ForwardCapture& capture = result_.captures[i];
    const float* values = tapped.values + row * capture.width;
    if (!all_finite(values, capture.width))
      fail_not_finite(capture.place.text() + " is not finite", part, token);
    std::copy_n(values, capture.width, capture.values.data() + target * capture.width);
    taken_[i][index] = true;
    --left_[i];
  }
}

void ForwardResults::take_logits(Passes& passes, const std::vector<ForwardPart>& parts, bool of_tail) {
  const size_t width = n_vocab_;
  // Some models give minus infinity to impossible tokens. Without an early end, compilers compare several at
  // a time.
  const auto possible = [&](const float* logits) {
    unsigned impossible = 0;
    for (size_t i = 0; i < width; ++i) impossible |= logits[i] <= std::numeric_limits<float>::max() ? 0U : 1U;
    return impossible == 0;
  };
  size_t next = 0;
  for (const ForwardPart& part : parts) {
    for (size_t token = part.begin; token < part.end; ++token) {
      const size_t target = logit_rows_[part.sequence].at(token);
      if (target == kNowhere) continue;
      const float* logits = passes.logits(of_tail ? next++ : part.row + token - part.begin);
      if (!possible(logits)) fail_not_finite("A logit is not finite", part, token);
      std::copy_n(logits, width, result_.logits.data() + target * width);
    }
  }
}

void ForwardResults::finish(const std::vector<ForwardPart>& parts,
                            const std::vector<std::vector<EditEffect>>& effects, AttentionReader& attention) {
  for (size_t i = 0; i < parts.size(); ++i) {
    std::vector<EditEffect>& sums = result_.effects[parts[i].sequence];
    for (size_t e = 0; e < sums.size(); ++e) sums[e].add(effects[i][e]);
  }
  std::vector<LayerAttention> layers = attention.result();
  auto layer = layers.begin();
  for (ForwardCapture& capture : result_.captures) {
    if (capture.place.point != Point::kAttention) continue;
    std::copy(layer->weights.begin(), layer->weights.end(),
              capture.values.begin() + attention_at_[layer->layer]);
    attention_at_[layer->layer] += static_cast<std::ptrdiff_t>(layer->weights.size());
    ++layer;
  }
}

ForwardResult ForwardResults::release() {
  if (request_.half) {
    shorten(result_.logits, result_.half_logits);
    for (ForwardCapture& capture : result_.captures) shorten(capture.values, capture.halves);
  }
  return std::move(result_);
}

}  // namespace tapline
