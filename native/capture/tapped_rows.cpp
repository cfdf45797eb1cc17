#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "capture/block_tap.h"
#include "ggml-backend.h"

// What BlockTap does at a point that it has reached: rows to the sink, edits into the graph.

namespace tapline {

namespace {

/// Rows between two that are needed are copied too, rather than in two copies, up to this many bytes: a copy
/// from a device takes about as long to start as this takes to transfer.
constexpr size_t kGapBytes = size_t{16} << 10U;

bool on_host_of(const ggml_tensor* t) {
  return ggml_backend_buffer_is_host(t->view_src != nullptr ? t->view_src->buffer : t->buffer);
}

/// Calls copy(first, count) for each run of consecutive numbers in rows[from..to).
template <class Copy>
void each_run(const std::vector<size_t>& rows, size_t from, size_t to, const Copy& copy) {
  for (size_t first = from; first < to;) {
    size_t end = first + 1;
    while (end < to && rows[end] == rows[end - 1] + 1) ++end;
    copy(first, end - first);
    first = end;
  }
}

}  // namespace

void BlockTap::take(ggml_tensor* t) {
  const ArmedPoint& here = points_[next_];
  const TapPoint point = here.point;
  if (batch_ < 0 || static_cast<size_t>(batch_) >= batches_->size()) {
    return fail("The compute graph had an unexpected number of micro-batches.");
  }
  const MicroBatch& batch = (*batches_)[static_cast<size_t>(batch_)];
  if (point.point == Point::kAttention) return take_attention(here, t);
  if (point.point == Point::kRouter) return take_routing(here, t);
  const auto width = static_cast<size_t>(here.width);
  const auto count = static_cast<size_t>(ggml_nelements(t)) / width;
  const bool fits = t->ne[0] == here.width && t->type == GGML_TYPE_F32 && ggml_is_contiguous(t);
  const std::vector<int>* indices = fits ? rows_of(count) : nullptr;
  if (indices == nullptr) {
    return fail(point.place().text() + " has " + std::to_string(count) + " rows where " +
                std::to_string(batch.rows.size()) + " were expected.");
  }
  if (!in_order()) return;

  if (count > 0) {
    const bool on_host = on_host_of(t);
    const std::vector<size_t> rows = on_host ? std::vector<size_t>() : fetch(t, here, *indices);
    std::vector<int> fetched;
    for (const size_t row : rows) fetched.push_back((*indices)[row]);
    if (!on_host) indices = &fetched;
    const size_t given = on_host ? count : rows.size();
    float* values = on_host ? static_cast<float*>(t->data) : staging_.data();
    const auto read = [&] { sink_({point.layer, values, indices, given, point.point, width, 1, t}); };
    const bool reads = point.read && sink_;
    if (reads && !point.read_edited) read();
    if (point.edits != nullptr && given > 0) {
      const auto [first, edited] = edit(*point.edits, *indices, values, here);
      if (!failure_.empty()) return;
      if (!on_host) write_back(t, rows, first, edited, width * sizeof(float));
    }
    if (reads && point.read_edited) read();
    if (here.keep) kept_[point.place()] = {{values, values + given * width}, *indices, width};
  }
  finish_point();
}

std::pair<size_t, size_t> BlockTap::edit(const std::vector<RowEdit>& edits, const std::vector<int>& indices,
                                         float* values, const ArmedPoint& here) {
  const int most = *std::max_element(indices.begin(), indices.end());
  row_at_.assign(static_cast<size_t>(most) + 1, -1);
  for (size_t row = 0; row < indices.size(); ++row)
    row_at_[static_cast<size_t>(indices[row])] = static_cast<int>(row);
  const auto width = static_cast<size_t>(here.width);
  size_t first = indices.size();
  size_t end = 0;
  for (const RowEdit& edit : edits) {
    if (edit.batch_index > most) continue;
    const int found = row_at_[static_cast<size_t>(edit.batch_index)];
    if (found < 0) continue;  // in another micro-batch, or not computed because nothing reads it
    const auto row = static_cast<size_t>(found);
    const float* gauged = nullptr;
    if (edit.edit->gauge_at) {
      gauged = kept_row({here.point.layer, *edit.edit->gauge_at}, edit.batch_index);
      if (gauged == nullptr) {
        fail("A row that an edit of " + here.point.place().text(/*first_word=*/false) +
             " reads was not computed.");
        return {0, 0};
      }
    }
    edit.effect->add(edit.edit->apply_to(values + row * width, width, here.heads, parts_, gauged));
    first = std::min(first, row);
    end = std::max(end, row + 1);
  }
  return {first, end > first ? end - first : 0};
}

const float* BlockTap::kept_row(Place place, int batch_index) const {
  const auto found = kept_.find(place);
  if (found == kept_.end()) return nullptr;
  const KeptRows& rows = found->second;
  const auto at = std::find(rows.indices.begin(), rows.indices.end(), batch_index);
  if (at == rows.indices.end()) return nullptr;
  return rows.values.data() + static_cast<size_t>(at - rows.indices.begin()) * rows.width;
}

const std::vector<int>* BlockTap::rows_of(size_t count) const {
  const MicroBatch& batch = (*batches_)[static_cast<size_t>(batch_)];
  if (count == batch.rows.size()) return &batch.rows;
  return count == batch.outputs.size() ? &batch.outputs : nullptr;
}

bool BlockTap::in_order() {
  const MicroBatch& batch = (*batches_)[static_cast<size_t>(batch_)];
  const bool elsewhere = seen_positions_.size() >= batch.positions.size() &&
                         !std::equal(batch.positions.begin(), batch.positions.end(), seen_positions_.begin());
  if ((seen_tokens_.empty() || seen_tokens_ == batch.tokens) && !elsewhere) return true;
  fail("The rows of a micro-batch are not in the expected order.");
  return false;
}

std::vector<size_t> BlockTap::fetch(const ggml_tensor* t, const ArmedPoint& here,
                                    const std::vector<int>& indices) {
  const TapPoint& point = here.point;
  const bool reads = point.read && sink_;
  std::vector<size_t> rows;
  if (here.keep || (reads && point.rows == nullptr)) {
    rows.resize(indices.size());
    std::iota(rows.begin(), rows.end(), size_t{0});
  } else {
    std::set<int> needed;
    if (reads) needed.insert(point.rows->begin(), point.rows->end());
    if (point.edits != nullptr) {
      for (const RowEdit& edit : *point.edits) needed.insert(edit.batch_index);
    }
    const size_t gap = kGapBytes / (static_cast<size_t>(here.width) * sizeof(float));
    for (size_t row = 0; row < indices.size(); ++row) {
      if (needed.count(indices[row]) == 0) continue;
      if (!rows.empty() && row - rows.back() - 1 <= gap) {
        while (rows.back() + 1 < row) rows.push_back(rows.back() + 1);
      }
      rows.push_back(row);
    }
  }
  const size_t bytes = static_cast<size_t>(here.width) * sizeof(float);
  staging_.resize(rows.size() * static_cast<size_t>(here.width));
  auto* const into = reinterpret_cast<char*>(staging_.data());
  each_run(rows, 0, rows.size(), [&](size_t at, size_t count) {
    ggml_backend_tensor_get(t, into + at * bytes, rows[at] * bytes, count * bytes);
  });
  return rows;
}

/// Writes `count` of the fetched rows from `first` on.
void BlockTap::write_back(ggml_tensor* t, const std::vector<size_t>& rows, size_t first, size_t count,
                          size_t row_bytes) const {
  const auto* const from = reinterpret_cast<const char*>(staging_.data());
  each_run(rows, first, first + count, [&](size_t at, size_t together) {
    ggml_backend_tensor_set(t, from + at * row_bytes, rows[at] * row_bytes, together * row_bytes);
  });
}

float* BlockTap::readable(const ggml_tensor* t) {
  if (on_host_of(t)) return static_cast<float*>(t->data);
  staging_.resize(static_cast<size_t>(ggml_nelements(t)));
  ggml_backend_tensor_get(t, staging_.data(), 0, ggml_nbytes(t));
  return staging_.data();
}

/// The weights of each token's experts and their ids. Only the best of a row of ids are read: devices that
/// choose in one step do not compute the others.
void BlockTap::take_routing(const ArmedPoint& here, ggml_tensor* t) {
  const Site& site = stream_->points.site(here.point.place());
  const ggml_tensor* sorted = follow(t, site.choice);
  const auto count = static_cast<size_t>(t->ne[2]);
  const auto used = static_cast<size_t>(here.width);
  const bool fits = t->type == GGML_TYPE_F32 && ggml_is_contiguous(t) && t->ne[0] == 1 &&
                    t->ne[1] == here.width && t->ne[3] == 1 && sorted != nullptr &&
                    sorted->op == GGML_OP_ARGSORT && sorted->type == GGML_TYPE_I32 &&
                    ggml_is_contiguous(sorted) && sorted->ne[0] == site.experts && sorted->ne[1] == t->ne[2];
  const std::vector<int>* indices = fits ? rows_of(count) : nullptr;
  if (indices == nullptr) return fail(here.point.place().text() + " has an unexpected shape.");
  if (!in_order()) return;
  if (here.point.read && sink_ && count > 0) {
    experts_.resize(count * used);
    for (size_t row = 0; row < count; ++row) {
      const size_t at = row * sorted->nb[1];
      ggml_backend_tensor_get(sorted, experts_.data() + row * used, at, used * sizeof(int32_t));
    }
    sink_({here.point.layer, readable(t), indices, count, Point::kRouter, used, 1, t, experts_.data()});
  }
  finish_point();
}

/// One row per head and token, over the cells of the memory.
void BlockTap::take_attention(const ArmedPoint& here, ggml_tensor* t) {
  const MicroBatch& batch = (*batches_)[static_cast<size_t>(batch_)];
  const bool fits = t->type == GGML_TYPE_F32 && ggml_is_contiguous(t) && t->ne[2] == here.heads &&
                    t->ne[1] == static_cast<int64_t>(batch.rows.size()) && t->ne[3] == 1;
  if (!fits) return fail(here.point.place().text() + " has an unexpected shape.");
  if (!in_order()) return;
  if (here.point.read && sink_) {
    sink_({here.point.layer, readable(t), &batch.rows, batch.rows.size(), Point::kAttention,
           static_cast<size_t>(t->ne[0]), static_cast<size_t>(here.heads), t});
  }
  finish_point();
}

}  // namespace tapline
