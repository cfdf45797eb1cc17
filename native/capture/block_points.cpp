#include "capture/block_points.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace tapline {

namespace {

/// Whether a token's row reads other tokens' here: through a memory, or by an operation over the tokens.
bool mixes_tokens(const GraphView& graph, int index) {
  const ggml_tensor* t = graph.node(index);
  switch (t->op) {
    case GGML_OP_FLASH_ATTN_EXT:
    case GGML_OP_SSM_CONV:
    case GGML_OP_SSM_SCAN:
    case GGML_OP_RWKV_WKV6:
    case GGML_OP_RWKV_WKV7:
    case GGML_OP_GATED_LINEAR_ATTN:
    case GGML_OP_GATED_DELTA_NET:
      return true;
    case GGML_OP_SOFT_MAX:
      if (t->src[1] != nullptr) return true;  // with a mask; experts are chosen without one
      break;
    default:
      break;
  }
  bool memory = false;
  graph.each_source(index, [&](const ggml_tensor* source) {
    memory = memory || GraphView::original_name(source).rfind("cache_", 0) == 0;
  });
  return memory;
}

/// A node, and the way to it from the block's output.
struct Stop {
  int node = -1;
  std::vector<uint8_t> route;

  Stop source(const GraphView& graph, uint8_t operand) const {
    Stop next{graph.index_of(graph.node(node)->src[operand]), route};
    next.route.push_back(operand);
    return next;
  }
};

/// What one block adds to the stream.
struct Block {
  Stop in;
  Stop attn;
  Stop mid;  // no node: the halves are parallel
  Stop ffn;
};

/// One block between two places of the residual stream.
class BlockWalk {
 public:
  /// `from` is the node of the stream before the block; -1: the tokens themselves.
  BlockWalk(const GraphView& graph, int from, int to, int n_embd, bool (*is_token_leaf)(const ggml_tensor*))
      : graph_(graph),
        from_(from),
        to_(to),
        n_embd_(n_embd),
        is_token_leaf_(is_token_leaf),
        flows_(flow(from)) {}

  /// The block's points, or nothing and `why()`.
  std::optional<Block> walk() {
    const Stop out = rest_of({to_, {}});
    const auto last = addition(out);
    if (!last) return parallel(out);
    const auto& [trunk, ffn] = *last;
    const auto first = is_start(trunk.node) ? std::nullopt : addition(trunk);
    if (!first) {
      if (auto both = parallel(out)) return both;
      if (!is_start(trunk.node))
        return refuse("changes the residual stream by more than what two halves add");
      start_ = trunk;
      return refuse("adds to the residual stream once, so that it has no two halves");
    }
    const auto& [start, attn] = *first;
    if (!is_start(start.node)) return refuse("adds to the residual stream more than twice");
    if (!mixes(start.node, attn.node))
      return refuse("has a first half in which no token reads another, so that it is no attention");
    return Block{start, attn, trunk, ffn};
  }
  const std::string& why() const { return why_; }
  /// Where the stream begins for a block that was refused; no node where that is not known, either.
  const Stop& start() const { return start_; }

 private:
  std::optional<Block> refuse(const char* why) {
    why_ = why;
    return std::nullopt;
  }
  bool flows(int node) const {
    return node >= begin() && node <= to_ && flows_[static_cast<size_t>(node - begin())];
  }
  int begin() const { return std::max(0, from_); }

  /// Of each node of the block, whether it is computed from node `start`, or from the tokens (-1), by a way
  /// that leaves node `around` out.
  std::vector<bool> flow(int start, int around = -1) const {
    std::vector<bool> reached(static_cast<size_t>(to_ - begin() + 1), false);
    if (start >= 0) reached[static_cast<size_t>(start - begin())] = true;
    for (int i = start >= 0 ? start + 1 : begin(); i <= to_; ++i) {
      if (i == around) continue;
      graph_.each_source(i, [&](const ggml_tensor* source) {
        const int index = graph_.index_of(source);
        const bool from = index < 0 ? start < 0 && is_token_leaf_(source)
                                    : index >= begin() && reached[static_cast<size_t>(index - begin())];
        if (from) reached[static_cast<size_t>(i - begin())] = true;
      });
    }
    return reached;
  }
  bool reaches(int start, int end) const {
    return start >= begin() && end <= to_ && end >= start && flow(start)[static_cast<size_t>(end - begin())];
  }

  /// The node whose rows these are, without what only picks or reshapes rows.
  Stop rest_of(Stop stop) const {
    while (stop.node >= 0 && stop.node != from_) {
      const ggml_tensor* t = graph_.node(stop.node);
      const bool keeps = t->op == GGML_OP_RESHAPE || t->op == GGML_OP_VIEW || t->op == GGML_OP_CONT ||
                         t->op == GGML_OP_GET_ROWS;
      if (!keeps || t->src[0] == nullptr || t->src[0]->ne[0] != n_embd_) break;
      Stop next = stop.source(graph_, 0);
      if (!flows(next.node)) break;
      stop = std::move(next);
    }
    return stop;
  }

  /// Both operands of a sum of rows, as they stand there; nothing for any other node.
  std::optional<std::pair<Stop, Stop>> operands(const Stop& sum) const {
    if (sum.node < 0 || sum.node == from_) return std::nullopt;
    const ggml_tensor* t = graph_.node(sum.node);
    if (t->op != GGML_OP_ADD || t->src[0] == nullptr || t->src[1] == nullptr) return std::nullopt;
    if (!ggml_are_same_shape(t->src[0], t->src[1]) || t->ne[0] != n_embd_) return std::nullopt;
    auto both = std::make_pair(sum.source(graph_, 0), sum.source(graph_, 1));
    if (!flows(both.first.node) || !flows(both.second.node) || both.first.node == both.second.node)
      return std::nullopt;
    return both;
  }

  /// Whether everything that leads from the block's input to its output passes `node`.
  bool is_trunk(int node) const {
    if (node == from_) return true;
    return flows(node) && !flow(from_, node)[static_cast<size_t>(to_ - begin())];
  }

  /// Of a sum, the stream that is added to and what is added, which is computed from it.
  std::optional<std::pair<Stop, Stop>> addition(const Stop& sum) const {
    const auto both = operands(sum);
    if (!both) return std::nullopt;
    for (const auto& [one, branch] : {*both, std::make_pair(both->second, both->first)}) {
      Stop trunk = rest_of(one);
      if (is_trunk(trunk.node) && reaches(trunk.node, branch.node)) return std::make_pair(trunk, branch);
    }
    return std::nullopt;
  }

  /// Whether the stream begins here, for this block.
  bool is_start(int node) const { return from_ >= 0 ? node == from_ : !addition({node, {}}).has_value(); }

  /// Whether `branch`, computed from `trunk`, reads other tokens' rows.
  bool mixes(int trunk, int branch) const {
    std::vector<bool> before(static_cast<size_t>(branch + 1), false);
    before.back() = true;
    for (int i = branch; i > trunk; --i) {
      if (!before[static_cast<size_t>(i)]) continue;
      // K and V that were stored are read through views of the memory, which are not computed from the
      // stream.
      if (mixes_tokens(graph_, i)) return true;
      graph_.each_source(i, [&](const ggml_tensor* source) {
        const int index = graph_.index_of(source);
        if (index > trunk && index <= branch) before[static_cast<size_t>(index)] = true;
      });
    }
    return false;
  }

  /// A block whose output is its input and two summands that are both computed from that, in any order of the
  /// sums.
  std::optional<Block> parallel(const Stop& out) {
    const auto both = operands(out);
    if (!both) return refuse("does not end with an addition to the residual stream");
    for (const auto& [sum, other] : {*both, std::make_pair(both->second, both->first)}) {
      const auto inner = operands(rest_of(sum));
      if (!inner) continue;
      if (auto block = of_summands({inner->first, inner->second, other})) return block;
    }
    return refuse("is not its input and what two halves add to it, one of which mixes tokens");
  }

  std::optional<Block> of_summands(const std::array<Stop, 3>& summands) const {
    for (size_t i = 0; i < summands.size(); ++i) {
      const Stop start = rest_of(summands[i]);
      if (from_ >= 0 ? start.node != from_ : !is_trunk(start.node)) continue;
      const Stop& one = summands[(i + 1) % 3];
      const Stop& two = summands[(i + 2) % 3];
      if (!reaches(start.node, one.node) || !reaches(start.node, two.node)) continue;
      const bool first = mixes(start.node, one.node);
      if (first == mixes(start.node, two.node)) continue;
      return Block{start, first ? one : two, Stop{}, first ? two : one};
    }
    return std::nullopt;
  }

  const GraphView& graph_;
  int from_;
  int to_;
  int n_embd_;
  bool (*is_token_leaf_)(const ggml_tensor*);
  std::vector<bool> flows_;
  std::string why_;
  Stop start_;
};

/// What a block's heads read and what they made of it.
struct Heads {
  Stop weights;  // no node: flash attention keeps none
  Stop out;      // no node: the heads' outputs do not stand side by side anywhere
  int count = 0;
  std::string why;
};

/// What a block's router chose.
struct Experts {
  Stop weights;  // no node: none was found
  std::vector<uint8_t> choice;
  int count = 0;
  int used = 0;  // for a token
  std::string why;
};

/// The ways back from one stop of a block to its input, node `from`.
class Ways {
 public:
  Ways(const GraphView& graph, int from, const Stop& end)
      : graph_(graph), from_(from), parents_(static_cast<size_t>(end.node + 1), {-1, 0}), end_(end) {
    for (int i = end.node; i > from_; --i) {
      if (!reached(i)) continue;
      for (uint8_t s = 0; s < GGML_MAX_SRC; ++s) {
        const ggml_tensor* source = graph.node(i)->src[s];
        const int index = source == nullptr ? -1 : graph.index_of(source);
        if (index > from_ && index < i && !reached(index)) parents_[static_cast<size_t>(index)] = {i, s};
      }
    }
  }

 protected:
  int first() const { return std::max(0, from_ + 1); }
  int last() const { return end_.node; }
  bool reached(int node) const { return node == end_.node || parents_[static_cast<size_t>(node)].first >= 0; }

  Stop stop(int node) const {
    Stop found{node, {}};
    for (int i = node; i != end_.node; i = parents_[static_cast<size_t>(i)].first)
      found.route.push_back(parents_[static_cast<size_t>(i)].second);
    std::reverse(found.route.begin(), found.route.end());
    found.route.insert(found.route.begin(), end_.route.begin(), end_.route.end());
    return found;
  }

  /// The only node of that kind on the way which reads `node` as that operand; -1 where there is none.
  int reader(int node, ggml_op op, int operand) const {
    int found = -1;
    for (int i = node + 1; node >= 0 && i <= end_.node; ++i) {
      const ggml_tensor* t = graph_.node(i);
      if (!reached(i) || t->op != op || t->src[operand] == nullptr) continue;
      if (graph_.index_of(t->src[operand]) != node) continue;
      if (found >= 0) return -1;
      found = i;
    }
    return found;
  }

  const GraphView& graph_;
  int from_;

 private:
  std::vector<std::pair<int, uint8_t>> parents_;  // who reads a node, and as which operand
  Stop end_;
};

/// Looks for the attention in what leads to what the block's first half adds.
class HeadSearch : private Ways {
 public:
  using Ways::Ways;

  Heads find() const {
    Heads heads;
    int found = -1;
    for (int i = first(); i <= last(); ++i) {
      if (!reached(i)) continue;
      const ggml_tensor* t = graph_.node(i);
      if (t->op != GGML_OP_FLASH_ATTN_EXT && !(t->op == GGML_OP_SOFT_MAX && t->src[1] != nullptr)) continue;
      if (found >= 0) {
        heads.why = "attends more than once";
        return heads;
      }
      found = i;
    }
    if (found < 0) {
      heads.why = "mixes tokens without attention weights";
      return heads;
    }
    const ggml_tensor* t = graph_.node(found);
    const bool fused = t->op == GGML_OP_FLASH_ATTN_EXT;
    heads.count = static_cast<int>(fused ? t->ne[1] : t->ne[2]);
    if (!fused && t->ne[3] == 1) heads.weights = stop(found);
    // Fused, the heads of a token stand side by side at once; otherwise they are brought there.
    const int side_by_side =
        fused ? reader(found, GGML_OP_RESHAPE, 0)
              : reader(reader(reader(found, GGML_OP_MUL_MAT, 1), GGML_OP_PERMUTE, 0), GGML_OP_CONT, 0);
    if (side_by_side >= 0 && graph_.node(side_by_side)->ne[0] % heads.count == 0)
      heads.out = stop(side_by_side);
    return heads;
  }
};

/// Looks for the choice of experts in what leads to the block's output: the ids by which matrices are picked
/// (MUL_MAT_ID) must be the first of a sorted row, and the weights must be read from rows by these very ids
/// and multiply what such a product gives, or what goes into it.
class ExpertSearch : private Ways {
 public:
  using Ways::Ways;

  Experts find() const {
    Experts experts;
    int chosen = -1;  // the node of their ids
    for (int i = first(); i <= last(); ++i) {
      if (!reached(i) || graph_.node(i)->op != GGML_OP_MUL_MAT_ID) continue;
      const int ids = graph_.index_of(graph_.node(i)->src[2]);
      if (ids <= from_) continue;  // an adapter's, which no token chooses
      if (chosen >= 0 && ids != chosen) return refused("chooses experts more than once");
      chosen = ids;
    }
    if (chosen < 0) return refused("has no experts");
    const ggml_tensor* ids = graph_.node(chosen);
    const ggml_tensor* sorted = ids->src[0];
    const bool best = ids->op == GGML_OP_VIEW && ids->view_offs == 0 && sorted != nullptr &&
                      sorted->op == GGML_OP_ARGSORT && sorted->op_params[0] == GGML_SORT_ORDER_DESC &&
                      ggml_is_contiguous(sorted) && sorted->ne[2] == 1 && sorted->ne[3] == 1 &&
                      ids->ne[1] == sorted->ne[1] && ids->nb[1] == sorted->nb[1];
    if (!best) return refused("chooses experts by something else than the best of a row of scores");
    for (int i = first(); i <= last(); ++i) {
      if (!reached(i) || graph_.node(i)->op != GGML_OP_MUL) continue;
      for (uint8_t operand = 0; operand < 2; ++operand) {
        const ggml_tensor* weights = graph_.node(i)->src[operand];
        const ggml_tensor* weighed = graph_.node(i)->src[1 - operand];
        if (!weigh(weights, weighed, ids) || !is_experts(i, weighed, chosen)) continue;
        auto choice = way_to_choice(weights, chosen);
        if (choice.empty()) continue;
        if (experts.weights.node >= 0) return refused("weighs its experts more than once");
        experts.weights = stop(i).source(graph_, operand);
        experts.choice = std::move(choice);
      }
    }
    if (experts.weights.node < 0) return refused("weighs its experts in a way that is not known");
    experts.count = static_cast<int>(sorted->ne[0]);
    experts.used = static_cast<int>(ids->ne[0]);
    return experts;
  }

 private:
  static Experts refused(const char* why) {
    Experts experts;
    experts.why = why;
    return experts;
  }

  /// Whether these are numbers for each token and expert of it, and rows for them.
  static bool weigh(const ggml_tensor* weights, const ggml_tensor* rows, const ggml_tensor* ids) {
    return weights != nullptr && rows != nullptr && weights->type == GGML_TYPE_F32 &&
           ggml_is_contiguous(weights) && weights->ne[0] == 1 && weights->ne[1] == ids->ne[0] &&
           weights->ne[2] == ids->ne[1] && weights->ne[3] == 1 && rows->ne[1] == ids->ne[0] &&
           rows->ne[2] == ids->ne[1] && rows->ne[3] == 1;
  }

  bool picks(const ggml_tensor* t, int chosen) const {
    return t->op == GGML_OP_MUL_MAT_ID && graph_.index_of(t->src[2]) == chosen;
  }

  /// Whether `rows` are what experts gave, or what node `product`, made of them, hands to experts.
  bool is_experts(int product, const ggml_tensor* rows, int chosen) const {
    for (const ggml_tensor* t = rows; t != nullptr && graph_.index_of(t) > from_; t = t->src[0]) {
      if (picks(t, chosen)) return true;
      const bool passes = t->op == GGML_OP_ADD_ID || t->op == GGML_OP_MUL || t->op == GGML_OP_SCALE ||
                          t->op == GGML_OP_RESHAPE;
      if (!passes) break;
    }
    for (int i = product + 1; i <= last(); ++i) {
      if (picks(graph_.node(i), chosen) && graph_.index_of(graph_.node(i)->src[1]) == product) return true;
    }
    return false;
  }

  /// Whether both are computed from one node of this block.
  bool share_a_source(int one, int other) const {
    const std::vector<bool> a = before(one);
    const std::vector<bool> b = before(other);
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (a[i] && b[i]) return true;
    }
    return false;
  }

  /// Of each node, whether it is one of this block from which `node` is computed.
  std::vector<bool> before(int node) const {
    std::vector<bool> found(static_cast<size_t>(node + 1), false);
    if (node > from_) found.back() = true;
    for (int i = node; i > from_; --i) {
      if (!found[static_cast<size_t>(i)]) continue;
      graph_.each_source(i, [&](const ggml_tensor* source) {
        const int index = graph_.index_of(source);
        if (index > from_ && index < i) found[static_cast<size_t>(index)] = true;
      });
    }
    return found;
  }

  /// From the weights back to the sorted ids, by which they were read; empty where that is not their way.
  std::vector<uint8_t> way_to_choice(const ggml_tensor* weights, int chosen) const {
    std::vector<uint8_t> way;
    for (const ggml_tensor* t = weights; t != nullptr && graph_.index_of(t) > from_; t = t->src[0]) {
      if (t->op == GGML_OP_GET_ROWS) {
        const int rows = graph_.index_of(t->src[0]);
        // An expert's own scale is read by its id, too, but comes from the file and not from the token.
        if (graph_.index_of(t->src[1]) != chosen || !share_a_source(rows, chosen)) return {};
        way.insert(way.end(), {1, 0});
        return way;
      }
      const bool passes = t->op == GGML_OP_RESHAPE || t->op == GGML_OP_SCALE || t->op == GGML_OP_DIV ||
                          t->op == GGML_OP_SOFT_MAX;
      if (!passes) return {};
      way.push_back(0);
    }
    return {};
  }
};

/// A name that ggml gives by the number of the node.
bool numbered(const char* name) {
  return std::strncmp(name, "node_", 5) == 0;
}

/// The nearest node, this one or before it, that has a name of its own.
Site site_of(const GraphView& graph, const Stop& stop) {
  Site site;
  site.node = stop.node;
  site.route = stop.route;
  for (int i = stop.node; i >= 0; --i) {
    const char* name = graph.node(i)->name;
    if (name[0] == '\0' || numbered(name) || graph.find(name) != i) continue;
    site.anchor = name;
    site.behind = stop.node - i;
    break;
  }
  return site;
}

bool is_norm(const ggml_tensor* t) {
  return t->op == GGML_OP_RMS_NORM || t->op == GGML_OP_NORM;
}

}  // namespace

const ggml_tensor* follow(const ggml_tensor* from, const std::vector<uint8_t>& route) {
  for (const uint8_t operand : route) {
    if (from == nullptr) return nullptr;
    from = from->src[operand];
  }
  return from;
}

BlockPoints find_block_points(const GraphView& graph, const std::vector<int>& blocks, int n_embd,
                              const std::string& subject, bool (*is_token_leaf)(const ggml_tensor*)) {
  BlockPoints points;
  const auto refuse = [&](Point point, const std::string& why) {
    BlockPoints::Found& found = points.at(point);
    found.sites.clear();
    found.supported = false;
    if (found.reason.empty()) found.reason = subject + "has no proven " + name_of(point) + ": " + why + ".";
  };
  for (BlockPoints::Found& found : points.found) found.supported = true;
  const auto place = [&](Point point, const Stop& stop, const std::string& block) {
    BlockPoints::Found& found = points.at(point);
    if (!found.supported) return;
    const ggml_tensor* t = graph.node(stop.node);
    const bool rows = t->type == GGML_TYPE_F32 && t->ne[0] == n_embd && ggml_is_contiguous(t);
    if (!rows) return refuse(point, block + "'s tensor does not hold one vector a token");
    Site site = site_of(graph, stop);
    if (site.anchor.empty()) return refuse(point, block + "'s tensor has no name, and none before it has");
    site.width = n_embd;
    found.sites.push_back(std::move(site));
  };
  const auto place_heads = [&](Point point, const Stop& stop, int heads, const std::string& why) {
    BlockPoints::Found& found = points.at(point);
    Site site;
    std::string without = why;
    const ggml_tensor* t = stop.node < 0 ? nullptr : graph.node(stop.node);
    if (t != nullptr && t->type == GGML_TYPE_F32 && ggml_is_contiguous(t)) {
      site = site_of(graph, stop);
      without = site.anchor.empty() ? "has no name there, nor before" : "";
      site.node = site.anchor.empty() ? -1 : site.node;
      site.heads = heads;
      site.width = static_cast<int>(t->ne[0]);
    }
    found.sites.push_back(std::move(site));
    found.without.push_back(without);
  };
  const auto place_router = [&](const Experts& experts) {
    BlockPoints::Found& found = points.at(Point::kRouter);
    Site site;
    if (experts.weights.node >= 0) site = site_of(graph, experts.weights);
    const bool named = !site.anchor.empty();
    if (!named) site.node = -1;
    site.width = experts.used;
    site.experts = experts.count;
    site.choice = experts.choice;
    found.sites.push_back(std::move(site));
    found.without.push_back(experts.why.empty() && !named ? "has no name there, nor before" : experts.why);
  };
  for (size_t layer = 0; layer < blocks.size(); ++layer) {
    const std::string block = "block " + std::to_string(layer);
    const int from = layer == 0 ? -1 : blocks[layer - 1];
    place(Point::kBlockOut, {blocks[layer], {}}, block);
    place_router(ExpertSearch(graph, from, {blocks[layer], {}}).find());
    if (layer > 0) place(Point::kBlockIn, {blocks[layer - 1], {}}, block);
    BlockWalk walk(graph, from, blocks[layer], n_embd, is_token_leaf);
    const auto found = walk.walk();
    if (!found) {
      if (layer == 0 && walk.start().node >= 0) {
        place(Point::kBlockIn, walk.start(), block);
      } else if (layer == 0) {
        refuse(Point::kBlockIn, block + " " + walk.why());
      }
      for (const Point point : {Point::kAttnOut, Point::kMid, Point::kFfnOut})
        refuse(point, block + " " + walk.why());
      for (const Point point : {Point::kAttention, Point::kHeadOut}) place_heads(point, {}, 0, walk.why());
      continue;
    }
    if (layer == 0) place(Point::kBlockIn, found->in, block);
    place(Point::kAttnOut, found->attn, block);
    place(Point::kFfnOut, found->ffn, block);
    const Heads heads = HeadSearch(graph, from, found->attn).find();
    place_heads(Point::kAttention, heads.weights, heads.count,
                heads.why.empty() ? "keeps no attention weights (flash attention)" : heads.why);
    place_heads(Point::kHeadOut, heads.out, heads.count,
                heads.why.empty() ? "has no place where the heads' outputs stand side by side" : heads.why);
    for (const Stop* stop : {&found->attn, &found->ffn}) {
      const ggml_tensor* t = graph.node(stop->node);
      while (t->op == GGML_OP_GET_ROWS || t->op == GGML_OP_RESHAPE) t = t->src[0];
      points.scaled = points.scaled || t->op == GGML_OP_SCALE;
      points.normed =
          points.normed || is_norm(t) || (t->op == GGML_OP_MUL && t->src[0] != nullptr && is_norm(t->src[0]));
    }
    if (found->mid.node >= 0) {
      place(Point::kMid, found->mid, block);
    } else {
      points.parallel = true;
      refuse(Point::kMid,
             "in " + block + " attention and MLP read the same input, so nothing is between them");
    }
  }
  for (const Point point : {Point::kAttention, Point::kHeadOut, Point::kRouter}) {
    BlockPoints::Found& found = points.at(point);
    const bool any =
        std::any_of(found.sites.begin(), found.sites.end(), [](const Site& site) { return site.node >= 0; });
    if (any) continue;
    if (found.without.empty()) {
      refuse(point, "there are no blocks");
    } else if (point == Point::kRouter) {  // the first blocks of many models have no experts, the last has
      refuse(point, "block " + std::to_string(blocks.size() - 1) + " " + found.without.back());
    } else {
      refuse(point, "block 0 " + found.without.front());
    }
  }
  return points;
}

}  // namespace tapline
