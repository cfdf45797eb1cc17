#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "dictionaries/dictionary.h"
#include "napi/objects.h"
#include "napi/plan_args.h"

namespace tapline {

namespace {

using dictionaries::Dictionary;
using dictionaries::Layout;
using dictionaries::SparseRows;

size_t count_of(const std::vector<float>& rows, int hidden) {
  if (hidden < 1 || rows.size() % static_cast<size_t>(hidden) != 0)
    throw_error(ErrorCode::kInvalidArgument, rows.size(), " values cannot form rows of ", hidden, ".");
  return rows.size() / static_cast<size_t>(hidden);
}

/// Checks what decode() does not.
void check_sparse(const Layout& layout, const SparseRows& sparse, const std::vector<float>& rows) {
  const std::vector<double>& pointers = sparse.pointers;
  const bool sound =
      !pointers.empty() && pointers.front() == 0 &&
      pointers.back() == static_cast<double>(sparse.indices.size()) &&
      sparse.values.size() == sparse.indices.size() && std::is_sorted(pointers.begin(), pointers.end()) &&
      std::all_of(sparse.indices.begin(), sparse.indices.end(),
                  [&](int32_t feature) { return feature >= 0 && feature < layout.features; }) &&
      ((layout.scaling == dictionaries::RowScaling::kNone && layout.skip == 0) ||
       count_of(rows, layout.hidden) + 1 == pointers.size());
  if (!sound) throw Error(ErrorCode::kInvalidArgument, "The sparse rows do not fit the dictionary.");
}

Napi::Value encode(const Call& call) {
  return start(
      call,
      [layout = dictionary_layout(call.options.Get("dictionary")),
       rows = field<std::vector<float>>(call.options, "rows"),
       threads = field(call.options, "threads", 0)](const CancelToken& cancel) {
        return Dictionary(layout).encode(rows.data(), count_of(rows, layout.hidden), threads, cancel);
      },
      [](Napi::Env env, const SparseRows& sparse) {
        return object_of(env, "pointers", sparse.pointers, "indices", sparse.indices, "values",
                         sparse.values);
      });
}

Napi::Value decode(const Call& call) {
  SparseRows sparse;
  read_fields(call.options, "pointers", sparse.pointers, "indices", sparse.indices, "values", sparse.values);
  return start(call, [layout = dictionary_layout(call.options.Get("dictionary")), sparse = std::move(sparse),
                      rows = field<std::vector<float>>(call.options, "rows"),
                      threads = field(call.options, "threads", 0)](const CancelToken& cancel) {
    const Dictionary dictionary(layout);
    check_sparse(layout, sparse, rows);
    return dictionary.decode(sparse, rows.data(), threads, cancel);
  });
}

}  // namespace

void define_encoding(Napi::Object exports) {
  define<encode>(exports, "encodeRows");
  define<decode>(exports, "decodeRows");
}

}  // namespace tapline
