#include "capture/block_points.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "capture/block_walk.h"
#include "capture/expert_search.h"
#include "capture/ffn_input.h"
#include "capture/head_search.h"

namespace tapline {

namespace {

/// Whether ggml made up the name from the number of the node.
bool numbered(const char* name) {
  return std::strncmp(name, "node_", 5) == 0;
}

/// Uses the nearest named node, this one or an earlier one, as the anchor.
Site site_of(const GraphView& graph, const TracedNode& traced) {
  Site site;
  site.node = traced.node;
  site.route = traced.route;
  for (int i = traced.node; i >= 0; --i) {
    const char* name = graph.node(i)->name;
    if (name[0] == '\0' || numbered(name) || graph.find(name) != i) continue;
    site.anchor = name;
    site.offset = traced.node - i;
    break;
  }
  return site;
}

/// Collects the points of one block after another.
class PointSearch {
 public:
  PointSearch(const GraphView& graph, int n_embd, const std::string& subject)
      : graph_(graph), n_embd_(n_embd), subject_(subject) {
    for (BlockPoints::Found& found : points_.found) found.supported = true;
  }

  /// A block between two nodes of the stream, as it was walked.
  void add(int layer, int from, int to, const Block& parts) {
    const std::string block = "block " + std::to_string(layer);
    place(Point::kBlockOut, {to, {}}, block);
    place_experts(find_experts(graph_, from, {to, {}}));
    // The first block's input is where its walk ends.
    const TracedNode input = from < 0 ? parts.in : TracedNode{from, {}};
    if (input.node >= 0) {
      place(Point::kBlockIn, input, block);
    } else {
      refuse(Point::kBlockIn, block + " " + parts.why);
    }
    if (!parts.why.empty()) {
      for (const Point point : {Point::kAttnOut, Point::kMid, Point::kFfnIn, Point::kFfnOut})
        refuse(point, block + " " + parts.why);
      for (const Point point : {Point::kAttention, Point::kHeadOut}) place_or_not(point, {}, parts.why);
      return;
    }
    place(Point::kAttnOut, parts.attn, block);
    const FfnInput ffn_input = find_ffn_input(graph_, parts, n_embd_);
    if (ffn_input.why.empty()) {
      place(Point::kFfnIn, ffn_input.node, block);
    } else {
      refuse(Point::kFfnIn, block + " " + ffn_input.why);
    }
    place(Point::kFfnOut, parts.ffn, block);
    place_heads(find_heads(graph_, from, parts.attn));
    note_halves(parts);
    if (parts.mid.node >= 0) {
      place(Point::kMid, parts.mid, block);
    } else {
      points_.parallel = true;
      refuse(Point::kMid,
             "in " + block + " attention and MLP have the same input, so there is no point between them");
    }
  }

  BlockPoints result() {
    for (const Point point : {Point::kAttention, Point::kHeadOut, Point::kRouter}) {
      const BlockPoints::Found& found = points_.at(point);
      const bool any = std::any_of(found.sites.begin(), found.sites.end(),
                                   [](const Site& site) { return site.node >= 0; });
      if (any) continue;
      // In many models the first blocks have no experts, but the last does.
      const size_t named = point == Point::kRouter ? found.without.size() - 1 : 0;
      refuse(point, "block " + std::to_string(named) + " " + found.without[named]);
    }
    return std::move(points_);
  }

 private:
  void refuse(Point point, const std::string& why) {
    BlockPoints::Found& found = points_.at(point);
    found.sites.clear();
    found.supported = false;
    if (found.reason.empty()) found.reason = subject_ + "has no proven " + name_of(point) + ": " + why + ".";
  }

  /// A point with rows of n_embd, which all blocks must have.
  void place(Point point, const TracedNode& traced, const std::string& block) {
    BlockPoints::Found& found = points_.at(point);
    if (!found.supported) return;
    const ggml_tensor* t = graph_.node(traced.node);
    const bool rows = t->type == GGML_TYPE_F32 && t->ne[0] == n_embd_ && ggml_is_contiguous(t);
    if (!rows) return refuse(point, block + "'s tensor does not hold one vector per token");
    Site site = site_of(graph_, traced);
    if (site.anchor.empty())
      return refuse(point, block + "'s tensor has no name, and neither do earlier ones");
    site.width = n_embd_;
    found.sites.push_back(std::move(site));
  }

  /// A point that some blocks may lack: without a node, for the reason `why`.
  Site& place_or_not(Point point, const TracedNode& traced, std::string why) {
    Site site;
    if (traced.node >= 0) {
      site = site_of(graph_, traced);
      why = site.anchor.empty() ? "has no name there or before" : "";
      if (site.anchor.empty()) site.node = -1;
    }
    BlockPoints::Found& found = points_.at(point);
    found.without.push_back(std::move(why));
    found.sites.push_back(std::move(site));
    return found.sites.back();
  }

  void place_heads(const Heads& heads) {
    const auto one = [&](Point point, const TracedNode& traced, const char* lacking) {
      const ggml_tensor* t = traced.node < 0 ? nullptr : graph_.node(traced.node);
      const bool readable = t != nullptr && t->type == GGML_TYPE_F32 && ggml_is_contiguous(t);
      Site& site =
          place_or_not(point, readable ? traced : TracedNode{}, heads.why.empty() ? lacking : heads.why);
      if (site.node < 0) return;
      site.heads = heads.count;
      site.width = static_cast<int>(t->ne[0]);
    };
    one(Point::kAttention, heads.weights, "does not store attention weights (flash attention)");
    one(Point::kHeadOut, heads.out, "has no tensor with the concatenated outputs of the heads");
  }

  void place_experts(const Experts& experts) {
    Site& site = place_or_not(Point::kRouter, experts.weights, experts.why);
    if (site.node < 0) return;
    site.width = experts.used;
    site.experts = experts.count;
    site.choice = experts.choice;
  }

  /// Records norms and scales that are applied to the outputs of the halves before the addition.
  void note_halves(const Block& parts) {
    for (const TracedNode* traced : {&parts.attn, &parts.ffn}) {
      const ggml_tensor* t = graph_.node(traced->node);
      while (t->op == GGML_OP_GET_ROWS || t->op == GGML_OP_RESHAPE) t = t->src[0];
      points_.scaled = points_.scaled || t->op == GGML_OP_SCALE;
      points_.normed = points_.normed || is_norm(t) ||
                       (t->op == GGML_OP_MUL && t->src[0] != nullptr && is_norm(t->src[0]));
    }
  }

  const GraphView& graph_;
  int n_embd_;
  const std::string& subject_;
  BlockPoints points_;
};

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
  PointSearch search(graph, n_embd, subject);
  int from = -1;
  for (size_t layer = 0; layer < blocks.size(); ++layer) {
    const int to = blocks[layer];
    search.add(static_cast<int>(layer), from, to, walk_block(graph, from, to, n_embd, is_token_leaf));
    from = to;
  }
  return search.result();
}

}  // namespace tapline
