// Every family in both precisions: samples and log-probabilities are the same bits in every
// schedule, on every instruction set, and in the trainer, however it packs them.
#include <algorithm>
#include <optional>
#include <span>
#include <tuple>

#include "kernels/cpu/table.h"
#include "kernels/isa.h"
#include "support/doctest_torch.h"
#include "support/schedules.h"
#include "support/tiny_model.h"
#include "trainer/packed_pass.h"

namespace tandem {
namespace {

using test::run_schedule;
using test::same_floats;
using test::same_samples;
using test::Samples;

struct Case {
  at::ScalarType dtype = at::kFloat;
  test::TinyModel tiny;

  [[nodiscard]] std::int64_t num_ids() const { return tiny.decoder->config().vocab_size - 7; }
};

struct Precision {
  at::ScalarType dtype = at::kFloat;
  std::string arithmetic = "widened";
};

std::vector<Precision> precisions() {
  std::vector<Precision> all = {{}, {.dtype = at::kBFloat16}};
  if (kernels::supports_dot_bf16()) {
    all.push_back({.dtype = at::kBFloat16, .arithmetic = "dot_bf16"});
  }
  return all;
}

// The golden families, and a model whose widths are no multiples of a vector.
Case make_case(const std::string& name, at::ScalarType dtype) {
  return {dtype,
          name == "odd widths" ? test::random_model(1, dtype)
                               : test::load_model("tests/golden/models/" + name, dtype)};
}

template <class Check>
void for_each_model(const Check& check) {
  for (const auto& [dtype, arithmetic] : precisions()) {
    for (const std::string name : {"llama-tied",
                                   "llama3-rope",
                                   "mistral",
                                   "qwen2",
                                   "qwen3",
                                   "sharded-qwen3-bf16",
                                   "odd widths"}) {
      CAPTURE(name);
      CAPTURE(dtype);
      CAPTURE(arithmetic);
      kernels::set_arithmetic("auto", arithmetic);
      Case model = make_case(name, dtype);
      check(model);
    }
  }
  kernels::set_arithmetic("auto", "auto");
}

rollout::SamplingParams sampling(double top_p = 1, double temperature = 1) {
  rollout::SamplingParams params;
  params.max_new_tokens = 10;
  params.stop_ids = {2};
  params.seed = 3;
  params.top_p = top_p;
  params.temperature = temperature;
  return params;
}

TEST_CASE("samples and log-probabilities are the same bits in every schedule") {
  for_each_model([](const Case& model) {
    for (const double top_p : {1.0, 0.8}) {
      const auto params = sampling(top_p);
      const auto reference = run_schedule(*model.tiny.decoder, {}, params, model.num_ids());
      REQUIRE(reference.size() == test::kScheduleGroups * test::kScheduleSamples);
      for (const auto& schedule : test::all_schedules()) {
        CAPTURE(schedule.name);
        CAPTURE(top_p);
        const auto samples = run_schedule(*model.tiny.decoder, schedule, params, model.num_ids());
        CHECK(same_samples(reference, samples));
      }
    }
  });
  set_compute_threads(1);
}

// The log-probabilities of each sample's tokens when its prompt and output are a prompt.
Samples scored_again(const Case& model,
                     const Samples& samples,
                     const rollout::SamplingParams& params,
                     std::int64_t max_batched_tokens) {
  test::Schedule schedule;
  schedule.max_batched_tokens = max_batched_tokens;
  rollout::Engine engine(
      *model.tiny.decoder, test::schedule_engine(schedule, model.num_ids()), nullptr);
  Samples again = samples;
  for (auto& [key, sample] : again) {
    rollout::GroupRequest request;
    std::tie(request.draw, request.first_sample) = key;
    request.prompt = test::schedule_prompt(sample.draw, model.num_ids());
    const auto first = static_cast<std::ptrdiff_t>(request.prompt.size()) - 1;
    request.prompt.insert(request.prompt.end(), sample.ids.begin(), sample.ids.end());
    request.params = params;
    request.params.max_new_tokens = 1;
    request.params.num_prompt_logprobs = 0;
    engine.add(std::move(request));
    const auto scores = engine.run().at(0).prompt.logprobs;
    sample.logprobs.assign(scores.begin() + first, scores.end());
  }
  return again;
}

TEST_CASE("an output that is fed back as a prompt has the log-probabilities it was sampled with") {
  for_each_model([](const Case& model) {
    for (const double temperature : {1.0, 0.7}) {
      const auto params = sampling(1, temperature);
      const auto samples = run_schedule(*model.tiny.decoder, {}, params, model.num_ids());
      for (const std::int64_t chunk : {2048, 7}) {
        CAPTURE(chunk);
        CHECK(same_samples(samples, scored_again(model, samples, params, chunk)));
      }
    }
  });
}

TEST_CASE("instruction sets agree to the last bit, in float32 and in widened bfloat16") {
  for_each_model([](const Case& model) {
    if (kernels::arithmetic() == kernels::Arithmetic::kDotBf16 && model.dtype == at::kBFloat16) {
      return;  // an arithmetic of one instruction set alone
    }
    std::optional<Samples> reference;
    for (const auto isa : kernels::supported_isas()) {
      kernels::set_arithmetic(kernels::name_of(isa), "widened");
      CAPTURE(kernels::name_of(isa));
      const auto samples = run_schedule(*model.tiny.decoder, {}, sampling(), model.num_ids());
      CHECK(same_samples(reference.value_or(samples), samples));
      reference = samples;
    }
  });
}

// Sampled sequences as the trainer takes them.
struct Packed {
  std::vector<std::vector<TokenId>> ids;
  std::vector<std::vector<std::uint8_t>> masks;
  std::vector<const rollout::FinishedSample*> samples;

  Packed(const Samples& from, std::int64_t num_ids, bool reversed) {
    for (const auto& [key, sample] : from) {
      samples.push_back(&sample);
    }
    if (reversed) {
      std::reverse(samples.begin(), samples.end());
    }
    for (const auto* sample : samples) {
      ids.push_back(test::schedule_prompt(sample->draw, num_ids));
      ids.back().insert(ids.back().end(), sample->ids.begin(), sample->ids.end());
      masks.emplace_back(sample->ids.size(), 1);
    }
  }
};

struct Packing {
  std::string name;
  std::size_t sequences_a_pass = 100;
  bool reversed = false;
  bool with_gradient = false;
  bool checkpoint_layers = false;
  int threads = 1;
};

std::vector<Packing> packings() {
  return {{.name = "one tree"},
          {.name = "each sequence alone", .sequences_a_pass = 1},
          {.name = "trees of 4, reversed", .sequences_a_pass = 4, .reversed = true},
          {.name = "with gradient", .with_gradient = true},
          {.name = "checkpointed layers, trees of 7",
           .sequences_a_pass = 7,
           .with_gradient = true,
           .checkpoint_layers = true},
          {.name = "2 threads, reversed", .reversed = true, .with_gradient = true, .threads = 2}};
}

// Whether all log-probabilities of the trainer's passes are the sampler's.
bool trainer_agrees(const Case& model,
                    const Samples& samples,
                    const Packing& packing,
                    double temperature) {
  set_compute_threads(packing.threads);
  const Packed packed(samples, model.num_ids(), packing.reversed);
  bool same = true;
  for (std::size_t begin = 0; begin < packed.ids.size(); begin += packing.sequences_a_pass) {
    const std::size_t end = std::min(packed.ids.size(), begin + packing.sequences_a_pass);
    std::vector<trainer::PackSequence> sequences;
    std::vector<const std::vector<AllowedSet>*> allowed;
    for (std::size_t i = begin; i < end; ++i) {
      const auto prompt = static_cast<std::int64_t>(packed.ids[i].size() - packed.masks[i].size());
      sequences.push_back(
          {.ids = packed.ids[i], .prompt_length = prompt, .wanted = packed.masks[i]});
      allowed.push_back(&packed.samples[i]->allowed);
    }
    const trainer::PackedPass pass(*model.tiny.decoder,
                                   sequences,
                                   allowed,
                                   {.with_gradient = packing.with_gradient,
                                    .checkpoint_layers = packing.checkpoint_layers,
                                    .temperature = temperature,
                                    .num_ids = model.num_ids()});
    for (std::size_t i = begin; i < end; ++i) {
      same = same && same_floats(packed.samples[i]->logprobs, pass.logprobs()[i - begin]);
    }
  }
  set_compute_threads(1);
  return same;
}

TEST_CASE("the trainer's log-probabilities are the sampler's, however sequences are packed") {
  for_each_model([](const Case& model) {
    for (const auto& [top_p, temperature] : {std::pair{1.0, 1.0}, {0.8, 0.6}, {1.0, 1.4}}) {
      const auto samples =
          run_schedule(*model.tiny.decoder, {}, sampling(top_p, temperature), model.num_ids());
      for (const auto& packing : packings()) {
        CAPTURE(packing.name);
        CAPTURE(temperature);
        CHECK(trainer_agrees(model, samples, packing, temperature));
      }
    }
  });
}

TEST_CASE("after an update the engine gives what a fresh one gives") {
  for_each_model([](Case& model) {
    const test::Schedule schedule;
    const auto config = test::schedule_engine(schedule, model.num_ids());
    rollout::Engine engine(*model.tiny.decoder, config, nullptr);
    const auto before = run_schedule(engine, schedule, sampling(), model.num_ids());
    model.tiny.weights->layers()[0].qkv.value.mul_(1.5);
    model.tiny.weights->bump();
    engine.enter_train_phase();
    engine.enter_rollout_phase();
    const auto after = run_schedule(engine, schedule, sampling(), model.num_ids());
    const auto fresh = run_schedule(*model.tiny.decoder, schedule, sampling(), model.num_ids());
    CHECK(same_samples(after, fresh));
    CHECK_FALSE(same_samples(before, after));
  });
}

// The negative control: a product that cuts its sum where the number of rows says.
const kernels::Table& honest_table() {
  static const kernels::Table table = kernels::table();
  return table;
}

void row_dependent_linear(const kernels::LinearArgs<float, float>& args) {
  auto changed = args;
  changed.num_slices = args.rows > 4 && args.depth % (2 * args.num_slices) == 0
                           ? 2 * args.num_slices
                           : args.num_slices;
  honest_table().gemm.linear_f32(changed);
}

TEST_CASE("with a product that depends on the number of rows every comparison fails") {
  const Case model = make_case("llama-tied", at::kFloat);
  kernels::Table dishonest = honest_table();
  dishonest.gemm.linear_f32 = row_dependent_linear;
  kernels::set_table(dishonest);
  const auto reference = run_schedule(*model.tiny.decoder, {}, sampling(), model.num_ids());
  const test::Schedule alone = {.name = "alone", .alone = true, .separate = true};
  const auto samples = run_schedule(*model.tiny.decoder, alone, sampling(), model.num_ids());
  const bool trainer_same = trainer_agrees(model, samples, packings()[0], 1.0);
  kernels::set_isa("auto");
  CHECK_FALSE(same_samples(reference, samples));
  CHECK_FALSE(trainer_same);
}

}  // namespace
}  // namespace tandem
