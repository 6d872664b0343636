// Attention against tests/golden/attention: packed sequences, paged caches, prefix trees.
#include <set>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/attention_cases.h"
#include "kernels/golden_case.h"
#include "support/doctest_torch.h"

namespace tandem::kernels {
namespace {

using test::GoldenCase;
using test::PathBuilder;

// What these kernels do not do yet: attention that is not causal, learned sinks, and values of
// another width than keys.
const std::set<std::string> kLater = {"varlen_mha_full", "varlen_sinks_window", "varlen_mla_dims"};

// Sequence i has lens_k[i] keys, which lie in the slots that `slot` gives for (sequence, position).
// Its queries are the last lens_q[i] positions.
template <class Slot>
KeyPaths sequence_paths(const GoldenCase& golden, Slot slot) {
  const auto lens_q = golden.settings["lens_q"].get<std::vector<std::int32_t>>();
  const auto lens_k = golden.settings["lens_k"].get<std::vector<std::int32_t>>();
  PathBuilder builder;
  for (std::size_t i = 0; i < lens_q.size(); ++i) {
    std::vector<std::int32_t> slots;
    for (std::int32_t j = 0; j < lens_k[i]; ++j) {
      slots.push_back(slot(static_cast<int>(i), j));
    }
    builder.add(slots, lens_k[i] - lens_q[i]);
  }
  return builder.paths();
}

KeyPaths packed_paths(const GoldenCase& golden) {
  const at::Tensor starts = golden["cu_seqlens_k"];
  return sequence_paths(golden, [&](int i, int j) { return starts[i].item<int>() + j; });
}

KeyPaths paged_paths(const GoldenCase& golden) {
  const at::Tensor blocks = golden["block_table"];
  const int size = golden.settings["block_size"];
  return sequence_paths(
      golden, [&](int i, int j) { return blocks[i][j / size].item<int>() * size + j % size; });
}

// The path of a node's rows goes through its ancestors to its last token.
KeyPaths tree_paths(const GoldenCase& golden) {
  const auto parent = golden.settings["node_parent"].get<std::vector<int>>();
  const auto length = golden.settings["node_length"].get<std::vector<std::int32_t>>();
  const auto first = golden.settings["node_start"].get<std::vector<std::int32_t>>();
  PathBuilder builder;
  std::vector<std::vector<std::int32_t>> node_path;
  for (std::size_t node = 0; node < parent.size(); ++node) {
    auto path = parent[node] < 0 ? std::vector<std::int32_t>() : node_path[parent[node]];
    const auto inherited = static_cast<std::int32_t>(path.size());
    for (std::int32_t i = 0; i < length[node]; ++i) {
      path.push_back(first[node] + i);
    }
    builder.add(path, inherited);
    node_path.push_back(path);
  }
  return builder.paths();
}

AttentionOptions options_of(const GoldenCase& golden) {
  return {golden.number("scale"),
          static_cast<std::int64_t>(golden.number("window")),
          golden.number("softcap")};
}

double largest_difference(const at::Tensor& got, const at::Tensor& want) {
  return (got.to(at::kDouble) - want).abs().max().item<double>();
}

void check_case(const GoldenCase& golden) {
  const std::string kind = golden.settings["kind"];
  const bool paged = kind == "paged";
  const KeyPaths paths = kind == "tree" ? tree_paths(golden)
                         : paged        ? paged_paths(golden)
                                        : packed_paths(golden);
  const auto leaf = [](const at::Tensor& x) { return x.clone().requires_grad_(); };
  const auto q = leaf(golden["q"]);
  const auto k = paged ? golden["k_cache"].flatten(0, 1) : leaf(golden["k"]);
  const auto v = paged ? golden["v_cache"].flatten(0, 1) : leaf(golden["v"]);
  if (paged) {
    const auto out = attention(q.detach(), k, v, paths, options_of(golden));
    CHECK(largest_difference(out, golden["out"]) < 5e-6);
    const auto half = [](const at::Tensor& x) { return x.detach().to(at::kBFloat16); };
    const auto out_bf16 = attention(half(q), half(k), half(v), paths, options_of(golden));
    CHECK((out_bf16.scalar_type() == at::kBFloat16));
    CHECK(largest_difference(out_bf16, golden["out"]) <
          2e-2 * golden["out"].abs().max().item<double>());
    return;
  }
  const auto out = attention(q, k, v, paths, options_of(golden));
  CHECK(largest_difference(out, golden["out"]) < 5e-6);
  out.backward(golden["dout"]);
  CHECK(test::relative_l2(q.grad(), golden["dq"]) < 2e-5);
  CHECK(test::relative_l2(k.grad(), golden["dk"]) < 2e-5);
  CHECK(test::relative_l2(v.grad(), golden["dv"]) < 2e-5);
}

TEST_CASE("every golden case of causal attention holds, with its gradients") {
  int num_checked = 0;
  for (const GoldenCase& golden : test::attention_cases()) {
    const std::string name = golden.settings["name"];
    CAPTURE(name);
    if (kLater.count(name) == 1) {
      MESSAGE("not yet: " << name);
      continue;
    }
    check_case(golden);
    ++num_checked;
  }
  CHECK(num_checked == 10);
}

}  // namespace
}  // namespace tandem::kernels
