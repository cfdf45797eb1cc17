#include "experiment/attribution.h"

#include <utility>

#include "experiment/checks.h"
#include "experiment/frozen_pass.h"

namespace tapline {

namespace {

// Of the functions that are carried through the blocks, in bytes.
constexpr size_t kMostBytes = size_t{2} << 30;

class Run {
 public:
  Run(Passes& passes, const AttributionRequest& request, const CancelToken& cancel)
      : passes_(passes), request_(request), cancel_(cancel), n_(request.tokens.size()) {
    check();
  }

  Attribution run(const CountProgress& progress) {
    const Passes::ClearAtEnd clear{passes_};
    LinearPassRequest pass;
    pass.neurons = request_.neurons;
    pass.precise = request_.precise;
    if (!request_.other.empty())
      pass.others = frozen_rows(passes_, request_.other, /*written=*/true, cancel_).blocks;
    const FrozenRows rows = frozen_rows(passes_, request_.tokens, /*written=*/false, cancel_);
    const WeightFile weights(passes_.model());
    pass.functions = functions_of(weights, rows.last);
    ThreadTeam team(passes_.n_threads());
    Attribution found;
    found.pass = linear_pass(frozen_blocks(passes_, weights, rows), pass, team, cancel_, progress);
    const FrozenBounds bounds = frozen_bounds(passes_, request_.neurons > 0);
    found.apart_bound = bounds.apart;
    found.residual_bound = bounds.residual;
    check(found);
    return found;
  }

 private:
  static void check(const Attribution& found) {
    check_apart("attention", found.pass.apart, found.apart_bound);
    check_apart("MLP", found.pass.ffn_apart, found.apart_bound);
    for (size_t i = 0; i < found.pass.functions.size(); ++i) {
      const StreamParts& parts = found.pass.functions[i];
      if (parts.residual <= found.residual_bound) continue;
      throw_error(ErrorCode::kCompute, "The parts of target ", i, " do not add up to its value of ",
                  two_digits(parts.value), ": the relative difference is ", two_digits(parts.residual),
                  ", at most ", two_digits(found.residual_bound), ".");
    }
  }

  void check() const {
    check_linear_paths(passes_, request_.neurons > 0);
    check_one_pass(passes_, request_.tokens, "Attribution");
    if (!request_.other.empty()) check_tokens(passes_, request_.other);
    if (!request_.other.empty() && request_.other.size() != n_)
      throw_error(ErrorCode::kInvalidArgument, "The other text must have the same number of tokens, ", n_,
                  ", got ", request_.other.size(), ".");
    if (request_.targets.empty()) throw Error(ErrorCode::kInvalidArgument, "At least one target is needed.");
    const size_t bytes =
        request_.targets.size() * n_ * width() * (request_.precise ? 8 : 4) *
        (request_.neurons > 0 ? 8 : 1);  // a block has more neurons than the stream has numbers
    if (bytes > kMostBytes)
      throw_error(ErrorCode::kInvalidArgument, request_.targets.size(), " targets of ", n_,
                  " tokens are too many for one call; divide them.");
    for (const AttributionTarget& target : request_.targets) check(target);
  }

  void check(const AttributionTarget& target) const {
    check_position(target.position, n_);
    if (target.direction.empty()) return check_logit(passes_, target.token, target.minus);
    passes_.model().check_layer(target.place.layer);
    check_place(passes_, target.place);
    const Point point = target.place.point;
    if (point != Point::kBlockIn && point != Point::kMid && point != Point::kBlockOut)
      throw_error(ErrorCode::kInvalidArgument, "A target reads block_in, mid or block_out, got ",
                  name_of(point), ".");
    if (target.direction.size() != width())
      throw_error(ErrorCode::kInvalidArgument, "A target's direction must have ", width(), " values, got ",
                  target.direction.size(), ".");
  }

  size_t width() const { return static_cast<size_t>(passes_.info().n_embd); }

  std::vector<StreamFunction> functions_of(const WeightFile& weights, const std::vector<float>& last) const {
    LogitFunctions logits(passes_, weights, cancel_);
    std::vector<StreamFunction> functions;
    for (const AttributionTarget& target : request_.targets) {
      if (!target.direction.empty()) {
        functions.push_back({target.place,
                             target.position,
                             {target.direction.begin(), target.direction.end()},
                             target.constant});
        continue;
      }
      LogitDirection found = logits.of(target.token, target.minus, last, target.position);
      functions.push_back({{passes_.info().n_layer - 1, Point::kBlockOut},
                           target.position,
                           std::move(found.direction),
                           found.constant});
    }
    return functions;
  }

  Passes& passes_;
  const AttributionRequest& request_;
  const CancelToken& cancel_;
  size_t n_;
};

}  // namespace

Attribution attribution(Passes& passes, const AttributionRequest& request, const CancelToken& cancel,
                        const CountProgress& progress) {
  const auto locked = passes.lock();
  return Run(passes, request, cancel).run(progress);
}

}  // namespace tapline
