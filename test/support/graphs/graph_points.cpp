// The addon's conclusions about compute graphs that no model has: reads graphs from stdin, prints a line of JSON
// for each. index.ts writes them: a line for each tensor, then a line that asks:
//
//   tensor NAME OP TYPE NE0 NE1 NE2 NE3 [KEY=VALUE...] [SOURCE...]
//   points N_EMBD BLOCK_OUTPUT...
//
// A tensor of the operation NONE is a leaf, and "inp_tokens" the one through which tokens enter. Shapes are
// not checked: a graph is only inspected. Keys: called, its name in the graph; offset, in the tensor
// that it views; stride, of the second dimension; param, the first parameter of its operation.

#include <cstring>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/block_points.h"
#include "ggml-cpp.h"
#include "ggml.h"

namespace {

constexpr size_t kMost = 1024;

bool is_token_leaf(const ggml_tensor* t) {
  return std::strcmp(t->name, "inp_tokens") == 0;
}

ggml_op op_of(const std::string& name) {
  for (int op = 0; op < GGML_OP_COUNT; ++op) {
    if (name == ggml_op_name(static_cast<ggml_op>(op))) return static_cast<ggml_op>(op);
  }
  throw std::invalid_argument("There is no operation " + name + ".");
}

ggml_type type_of(const std::string& name) {
  for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
    const char* known = ggml_type_name(static_cast<ggml_type>(type));
    if (known != nullptr && name == known) return static_cast<ggml_type>(type);
  }
  throw std::invalid_argument("There is no type " + name + ".");
}

class Graph {
 public:
  Graph()
      : context_(
            ggml_init({kMost * ggml_tensor_overhead() + ggml_graph_overhead_custom(kMost, false), nullptr,
                       /*no_alloc=*/true})),
        graph_(ggml_new_graph_custom(context_.get(), kMost, false)) {}

  void add(std::istringstream& line) {
    std::string name, op, type, word;
    int64_t ne[4];
    line >> name >> op >> type >> ne[0] >> ne[1] >> ne[2] >> ne[3];
    ggml_tensor* t = ggml_new_tensor(context_.get(), type_of(type), 4, ne);
    ggml_set_name(t, name.c_str());
    t->op = op_of(op);
    int sources = 0;
    while (line >> word) {
      const size_t equals = word.find('=');
      if (equals == std::string::npos) {
        t->src[sources++] = known(word);
        continue;
      }
      const std::string key = word.substr(0, equals);
      const std::string value = word.substr(equals + 1);
      if (key == "called") {
        ggml_set_name(t, value.c_str());
      } else if (key == "offset") {
        t->view_offs = std::stoul(value);
      } else if (key == "stride") {
        t->nb[1] = std::stoul(value);
      } else if (key == "param") {
        t->op_params[0] = std::stoi(value);
      } else {
        throw std::invalid_argument("There is no key " + key + ".");
      }
    }
    if (t->op == GGML_OP_VIEW) t->view_src = t->src[0];
    tensors_[name] = t;
    ggml_build_forward_expand(graph_, t);
  }

  void print_points(std::istringstream& line) const {
    const tapline::GraphView view(graph_);
    int n_embd = 0;
    line >> n_embd;
    std::vector<int> outputs;
    for (std::string name; line >> name;) outputs.push_back(view.index_of(known(name)));
    const tapline::BlockPoints points =
        tapline::find_block_points(view, outputs, n_embd, "The graph ", is_token_leaf);
    std::cout << "{\"parallel\":" << points.parallel << ",\"normed\":" << points.normed
              << ",\"scaled\":" << points.scaled << ",\"points\":{";
    for (size_t point = 0; point < tapline::kPointCount; ++point) {
      const tapline::BlockPoints::Found& found = points.found[point];
      std::cout << (point == 0 ? "" : ",") << '"' << tapline::kPointNames[point] << "\":{\"reason\":\""
                << found.reason << "\",\"without\":[";
      for (size_t i = 0; i < found.without.size(); ++i)
        std::cout << (i == 0 ? "" : ",") << '"' << found.without[i] << '"';
      std::cout << "],\"sites\":[";
      for (size_t layer = 0; layer < found.sites.size(); ++layer) {
        std::cout << (layer == 0 ? "" : ",");
        print(view, found.sites[layer], view.node(outputs[layer]));
      }
      std::cout << "]}";
    }
    std::cout << "}}" << std::endl;
  }

 private:
  ggml_tensor* known(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) throw std::invalid_argument("There is no tensor " + name + ".");
    return found->second;
  }

  static void print(const tapline::GraphView& view, const tapline::Site& site, const ggml_tensor* output) {
    if (site.node < 0) {
      std::cout << "null";
      return;
    }
    const ggml_tensor* there = tapline::follow(output, site.route);
    const ggml_tensor* chosen = site.choice.empty() ? nullptr : tapline::follow(there, site.choice);
    std::cout << "{\"node\":\"" << view.node(site.node)->name << "\",\"reached\":\""
              << (there == nullptr ? "" : there->name) << "\",\"anchor\":\"" << site.anchor
              << "\",\"offset\":" << site.offset << ",\"width\":" << site.width << ",\"heads\":" << site.heads
              << ",\"experts\":" << site.experts << ",\"chosen\":\""
              << (chosen == nullptr ? "" : chosen->name) << "\"}";
  }

  ggml_context_ptr context_;
  ggml_cgraph* graph_;
  std::unordered_map<std::string, ggml_tensor*> tensors_;
};

}  // namespace

int main() {
  try {
    auto graph = std::make_unique<Graph>();
    for (std::string text; std::getline(std::cin, text);) {
      std::istringstream line(text);
      std::string what;
      line >> what;
      if (what == "tensor") {
        graph->add(line);
      } else if (what == "points") {
        graph->print_points(line);
        graph = std::make_unique<Graph>();
      } else {
        throw std::invalid_argument("What is '" + text + "'?");
      }
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
  return 0;
}
