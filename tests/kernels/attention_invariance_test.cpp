// A row of attention has the same bits however it is computed; and the test that says so can fail.
#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/attention.h"
#include "kernels/attention_cases.h"
#include "kernels/isa.h"
#include "support/doctest_torch.h"

namespace tandem::kernels {
namespace {

using test::PathBuilder;

using Attention = std::function<at::Tensor(const at::Tensor&,
                                           const at::Tensor&,
                                           const at::Tensor&,
                                           const KeyPaths&,
                                           const AttentionOptions&)>;

// Tokens of a few sequences, each in a row of q, k, v.
struct Tokens {
  std::vector<std::vector<std::int32_t>> sequences;
  at::Tensor q, k, v;
  AttentionOptions options;
};

Tokens make_tokens(std::int64_t width, at::ScalarType type) {
  at::manual_seed(11);
  Tokens tokens;
  tokens.sequences = test::slots_in_order({100, 1, 33, 16});
  tokens.q = at::randn({150, 6, width}).to(type);
  tokens.k = at::randn({150, 2, width}).to(type);
  tokens.v = at::randn({150, 2, width}).to(type);
  tokens.options.scale = 0.3;
  return tokens;
}

// All rows in calls that take up to `chunk` tokens of every sequence.
at::Tensor in_chunks(const Attention& attend, const Tokens& t, std::int32_t chunk) {
  const at::Tensor out = at::empty_like(t.q);
  for (std::int32_t first = 0; first < 100; first += chunk) {
    PathBuilder builder;
    std::vector<std::int64_t> rows;
    for (const auto& sequence : t.sequences) {
      const auto end = std::min<std::int32_t>(first + chunk, std::ssize(sequence));
      if (first < end) {
        builder.add({sequence.begin(), sequence.begin() + end}, first);
        rows.insert(rows.end(), sequence.begin() + first, sequence.begin() + end);
      }
    }
    const auto index = at::tensor(rows, at::kLong);
    out.index_copy_(
        0, index, attend(t.q.index_select(0, index), t.k, t.v, builder.paths(), t.options));
  }
  return out;
}

at::Tensor one_row_at_a_time(const Attention& attend, const Tokens& t) {
  std::vector<at::Tensor> rows;
  for (const auto& sequence : t.sequences) {
    for (std::int32_t j = 0; j < std::ssize(sequence); ++j) {
      PathBuilder builder;
      builder.add({sequence.begin(), sequence.begin() + j + 1}, j);
      rows.push_back(attend(t.q.narrow(0, sequence[j], 1), t.k, t.v, builder.paths(), t.options));
    }
  }
  return at::cat(rows);
}

at::Tensor in_shuffled_slots(const Attention& attend, Tokens t) {
  std::vector<std::int64_t> place(150);
  std::iota(place.begin(), place.end(), 0);
  std::shuffle(place.begin(), place.end(), std::mt19937(3));
  const auto index = at::tensor(place, at::kLong);
  t.k = at::empty_like(t.k).index_copy_(0, index, t.k);
  t.v = at::empty_like(t.v).index_copy_(0, index, t.v);
  PathBuilder builder;
  for (auto sequence : t.sequences) {
    for (std::int32_t& slot : sequence) {
      slot = static_cast<std::int32_t>(place[slot]);
    }
    builder.add(sequence, 0);
  }
  return attend(t.q, t.k, t.v, builder.paths(), t.options);
}

// The last 40 tokens of the first sequence again, as a branch of a tree: the path is the same.
at::Tensor branch_of_tree(const Attention& attend, const Tokens& t) {
  const auto& sequence = t.sequences[0];
  PathBuilder builder;
  builder.add({sequence.begin(), sequence.begin() + 60}, 0);
  builder.add(sequence, 60);
  return attend(t.q.narrow(0, 0, 100), t.k, t.v, builder.paths(), t.options);
}

bool is_row_invariant(const Attention& attend, const Tokens& t) {
  const at::Tensor whole = in_chunks(attend, t, 100);
  bool same = test::same_bits(one_row_at_a_time(attend, t), whole);
  for (const std::int32_t chunk : {1, 7, 16, 64}) {
    same = same && test::same_bits(in_chunks(attend, t, chunk), whole);
  }
  same = same && test::same_bits(in_shuffled_slots(attend, t), whole);
  return same && test::same_bits(branch_of_tree(attend, t), whole.narrow(0, 0, 100));
}

TEST_CASE("decode, chunks, slots and trees give the bits of a whole prefill") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const std::int64_t width : {16, 24, 64}) {
      CAPTURE(width);
      Tokens tokens = make_tokens(width, type);
      CHECK(is_row_invariant(attention, tokens));
      tokens.options.window = 21;
      CHECK(is_row_invariant(attention, tokens));
      tokens.options.softcap = 2;
      CHECK(is_row_invariant(attention, tokens));
    }
  }
}

// Prompts with the paths that go on from each, of various lengths: groups of rows that share keys.
struct Forks {
  PathBuilder all;
  std::vector<PathBuilder> alone;  // each path by itself
  std::int64_t num_slots = 0;
};

Forks make_forks(std::int32_t rows_a_path) {
  Forks forks;
  std::mt19937 random(17);
  std::int32_t next_slot = 0;
  const auto extend = [&](std::vector<std::int32_t> path, int count) {
    for (int i = 0; i < count; ++i) {
      path.push_back(next_slot++);
    }
    return path;
  };
  for (const int prompt_length : {7, 16, 53, 100}) {
    const auto prompt = extend({}, prompt_length);
    for (int fork = 0; fork < 9; ++fork) {
      // The third path of each prompt leaves it early, and the fifth is only the prompt.
      const auto shared = fork == 2 ? prompt_length / 2 : prompt_length;
      const int tail = fork == 4 ? 0 : 1 + static_cast<int>(random() % 40);
      const auto path = extend({prompt.begin(), prompt.begin() + shared}, tail);
      const auto first = std::max<std::int32_t>(0, std::ssize(path) - rows_a_path);
      forks.all.add(path, first);
      forks.alone.emplace_back().add(path, first);
    }
  }
  forks.num_slots = next_slot;
  return forks;
}

TEST_CASE("rows that share a prompt have the bits of each row alone, on any number of threads") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const auto& [width, rows_a_path, window] : {std::array<std::int32_t, 3>{64, 1, 0},
                                                     {64, 3, 0},
                                                     {24, 2, 0},
                                                     {20, 1, 37},
                                                     {64, 12, 37},
                                                     {64, 1, 37}}) {
      CAPTURE(width);
      CAPTURE(rows_a_path);
      at::manual_seed(21);
      const Forks forks = make_forks(rows_a_path);
      const auto num_rows = static_cast<std::int64_t>(forks.all.positions.size());
      const auto q = at::randn({num_rows, 6, width}).to(type);
      const auto k = at::randn({forks.num_slots, 2, width}).to(type);
      const auto v = at::randn({forks.num_slots, 2, width}).to(type);
      const AttentionOptions options = {0.3, window, window > 0 ? 2.0 : 0.0};
      std::vector<at::Tensor> alone;
      std::int64_t row = 0;
      for (const PathBuilder& path : forks.alone) {
        const auto count = static_cast<std::int64_t>(path.positions.size());
        alone.push_back(attention(q.narrow(0, row, count), k, v, path.paths(), options));
        row += count;
      }
      for (const int num_threads : {1, 2, 4}) {
        set_compute_threads(num_threads);
        CHECK(test::same_bits(attention(q, k, v, forks.all.paths(), options), at::cat(alone)));
      }
      set_compute_threads(1);
    }
  }
}

TEST_CASE("the check fails for a kernel that treats one row and many differently") {
  const Attention row_dependent =
      [](const auto& q, const auto& k, const auto& v, const auto& paths, const auto& options) {
        return q.size(0) == 1 ? test::plain_attention(q, k, v, paths, options)
                              : attention(q, k, v, paths, options);
      };
  CHECK_FALSE(is_row_invariant(row_dependent, make_tokens(64, at::kFloat)));
}

TEST_CASE("threads and instruction sets change no bit, forward and backward") {
  PathBuilder builder;
  for (const auto& sequence : make_tokens(40, at::kFloat).sequences) {
    builder.add(sequence, 0);
  }
  const auto run = [&](const Tokens& tokens) {
    const auto leaf = [](const at::Tensor& x) { return x.clone().requires_grad_(); };
    const std::vector<at::Tensor> inputs = {leaf(tokens.q), leaf(tokens.k), leaf(tokens.v)};
    AttentionOptions options = tokens.options;
    options.softcap = 3;
    const auto out = attention(inputs[0], inputs[1], inputs[2], builder.paths(), options);
    out.backward(tokens.q);
    return at::cat({out.detach().flatten(),
                    inputs[0].grad().flatten(),
                    inputs[1].grad().flatten(),
                    inputs[2].grad().flatten()});
  };
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const Tokens tokens = make_tokens(40, type);
    set_isa("auto");
    const at::Tensor want = run(tokens);
    for (const Isa isa : supported_isas()) {
      set_isa(name_of(isa));
      CAPTURE(std::string(name_of(isa)));
      for (const int num_threads : {1, 2, 4}) {
        set_compute_threads(num_threads);
        CHECK(test::same_bits(run(tokens), want));
      }
    }
  }
  set_isa("auto");
  set_compute_threads(1);
}

}  // namespace
}  // namespace tandem::kernels
