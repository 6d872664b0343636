#include "trainer/checkpoint.h"

#include <algorithm>
#include <set>

#include "base/atomic_file.h"
#include "base/error.h"
#include "kernels/isa.h"
#include "support/doctest_torch.h"
#include "support/temporary_folder.h"
#include "support/tiny_model.h"
#include "trainer/weight_update.h"

namespace tandem::trainer {
namespace {

namespace fs = std::filesystem;

struct Trained {
  explicit Trained(std::uint64_t seed, at::ScalarType dtype = at::kFloat)
      : model(test::random_model(seed, dtype)),
        optimizer({}, optimizer_parameters(*model.weights)) {}

  void update(double gradient) {
    model.weights->zero_gradients();
    for (const auto& parameter : model.weights->parameters()) {
      parameter.weight->grad.fill_(gradient);
    }
    update_weights(*model.weights, optimizer, 1e-3);
  }

  fs::path save(const CheckpointFolder& folder, const RunState& state, std::int64_t keep) {
    static const std::map<std::string, std::string> kNoFiles;
    return folder.save({.state = state,
                        .weights = *model.weights,
                        .optimizer = optimizer,
                        .export_model = export_model,
                        .model_files = kNoFiles},
                       keep);
  }

  [[nodiscard]] bool same_weights(const Trained& other) const {
    const auto mine = model.weights->named_tensors();
    const auto theirs = other.model.weights->named_tensors();
    return std::equal(
        mine.begin(), mine.end(), theirs.begin(), theirs.end(), [](const auto& a, const auto& b) {
          return a.first == b.first && at::equal(a.second, b.second);
        });
  }

  test::TinyModel model;
  AdamW optimizer;
  bool export_model = true;
};

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

RunState at_step(std::int64_t step, std::int64_t best_step = -1) {
  RunState state;
  state.step = step;
  state.best_step = best_step;
  return state;
}

void check_round_trip(at::ScalarType dtype) {
  for (const bool export_model : {true, false}) {
    const test::TemporaryFolder folder;
    Trained saved(1, dtype);
    saved.export_model = export_model;
    saved.update(0.5);
    saved.update(-0.25);
    RunState state = at_step(2, 1);
    state.optimizer_steps = saved.optimizer.num_steps();
    state.num_tokens = (std::int64_t{1} << 60) + 1;  // beyond what a double holds
    state.best_reward = 0.1;
    state.stream = R"({"a": "\"quoted\"\n"})";
    state.recipe = "seed: 1\n";
    const auto path = saved.save(CheckpointFolder(folder.path()), state, 1);
    CHECK(fs::exists(path / "model") == export_model);

    Trained loaded(2, dtype);
    const RunState back = load_checkpoint(path, *loaded.model.weights, loaded.optimizer);
    CHECK(back.step == state.step);
    CHECK(back.optimizer_steps == 2);
    CHECK(back.num_tokens == state.num_tokens);
    CHECK(back.best_step == 1);
    CHECK(back.best_reward == 0.1);
    CHECK(back.stream == state.stream);
    CHECK(back.recipe == state.recipe);
    CHECK(loaded.same_weights(saved));
    saved.update(0.125);
    CHECK_FALSE(loaded.same_weights(saved));
    loaded.update(0.125);
    CHECK(loaded.same_weights(saved));  // so the moments were the same, too
    const auto mine = saved.optimizer.moments();
    const auto theirs = loaded.optimizer.moments();
    for (std::size_t p = 0; p < mine.size(); ++p) {
      CHECK(mine[p].master.empty() == (dtype == at::kFloat));
      CHECK(std::ranges::equal(mine[p].master, theirs[p].master));
    }
  }
}

TEST_CASE("weights, moments and state come back as they were, and go on alike") {
  check_round_trip(at::kFloat);
}

TEST_CASE("masters of bfloat16 weights come back too, to the last bit") {
  check_round_trip(at::kBFloat16);
}

TEST_CASE("a checkpoint of a run in the other precision is refused, and told which it was") {
  const test::TemporaryFolder folder;
  const CheckpointFolder checkpoints(folder.path());
  Trained in_float(1), in_bfloat(1, at::kBFloat16);
  const auto of_float = in_float.save(checkpoints, at_step(1), 2);
  const auto of_bfloat = in_bfloat.save(checkpoints, at_step(2), 2);
  CHECK_THROWS_WITH_AS(load_checkpoint(of_float, *in_bfloat.model.weights, in_bfloat.optimizer),
                       doctest::Contains("is of a run in float32; resume it with model.dtype"),
                       UserError);
  CHECK_THROWS_WITH_AS(load_checkpoint(of_bfloat, *in_float.model.weights, in_float.optimizer),
                       doctest::Contains("is of a run in bfloat16; resume it with model.dtype"),
                       UserError);
}

TEST_CASE("a checkpoint of bfloat16 weights goes on under its own arithmetic alone") {
  const test::TemporaryFolder folder;
  const CheckpointFolder checkpoints(folder.path());
  Trained in_float(1), in_bfloat(1, at::kBFloat16);
  const auto of_float = in_float.save(checkpoints, at_step(1), 2);
  const auto of_bfloat = in_bfloat.save(checkpoints, at_step(2), 2);
  CHECK(load_checkpoint(of_bfloat, *in_bfloat.model.weights, in_bfloat.optimizer).arithmetic ==
        kernels::name_of(kernels::arithmetic()));
  // As if the other arithmetic had computed them.
  const auto name = std::string(kernels::name_of(kernels::arithmetic()));
  const std::string other = name == "widened" ? "dot_bf16" : "widened";
  for (const auto& checkpoint : {of_float, of_bfloat}) {
    auto text = read_file(checkpoint / "state.json");
    text.replace(text.find('"' + name + '"') + 1, name.size(), other);
    write_file_atomic(checkpoint / "state.json", text);
  }
  CHECK(load_checkpoint(of_float, *in_float.model.weights, in_float.optimizer).step == 1);
  CHECK_THROWS_WITH_AS(load_checkpoint(of_bfloat, *in_bfloat.model.weights, in_bfloat.optimizer),
                       doctest::Contains(("resume with arithmetic=" + other).c_str()),
                       UserError);
}

TEST_CASE("the newest stay by the numbers of their steps, and the best stays with them") {
  const test::TemporaryFolder folder;
  const CheckpointFolder checkpoints(folder.path());
  Trained trained(1);
  for (const std::int64_t step : {999'998, 999'999, 1'000'000}) {
    trained.save(checkpoints, at_step(step, 999'998), 1);
  }
  CHECK(names_in(folder.path()) ==
        std::set<std::string>{"best", "latest", "step-1000000", "step-999998"});
  CHECK(checkpoints.latest() == folder / "step-1000000");
  CHECK(read_file(folder / "best") == "step-999998\n");
  trained.save(checkpoints, at_step(1'000'001, 1'000'001), 1);  // a better one
  CHECK(names_in(folder.path()) == std::set<std::string>{"best", "latest", "step-1000001"});
}

TEST_CASE("cutting back removes later checkpoints and what a killed writer left, nothing else") {
  const test::TemporaryFolder folder;
  const CheckpointFolder checkpoints(folder.path());
  Trained trained(1);
  for (const std::int64_t step : {2, 4, 10}) {
    trained.save(checkpoints, at_step(step), 5);
  }
  fs::create_directory(folder / ".tmp-step-000012-77");
  fs::create_directory(folder / "step-by-step");
  checkpoints.cut_back(4);
  CHECK(names_in(folder.path()) ==
        std::set<std::string>{"latest", "step-000002", "step-000004", "step-by-step"});
}

TEST_CASE("a checkpoint of a model with another shape is refused by name") {
  const test::TemporaryFolder folder;
  Trained saved(1);
  const auto path = saved.save(CheckpointFolder(folder.path()), at_step(1), 1);
  auto config = saved.model.weights->config();
  config.intermediate_size = 160;
  model::WeightStore other(config, at::kFloat);
  AdamW optimizer({}, optimizer_parameters(other));
  CHECK_THROWS_AS(load_checkpoint(path, other, optimizer), UserError);
}

}  // namespace
}  // namespace tandem::trainer
