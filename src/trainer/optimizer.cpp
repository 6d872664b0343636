#include "trainer/optimizer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/thread_pool.h"
#include "trainer/adamw_kernel.h"

namespace tandem::trainer {
namespace {

// Elements of a piece: its five arrays fit the second-level cache, and the sum over a piece is the
// same whatever the number of threads.
constexpr std::size_t kPieceSize = 16384;

void require(bool condition, std::string_view text) {
  if (!condition) {
    fail<UserError>("{}", text);
  }
}

void check_config(const AdamWConfig& c) {
  require(c.beta1 >= 0 && c.beta1 < 1 && c.beta2 >= 0 && c.beta2 < 1,
          "optimizer.betas: both must be at least 0 and below 1");
  require(std::isfinite(c.epsilon) && c.epsilon > 0, "optimizer.epsilon: must be above 0");
  require(std::isfinite(c.weight_decay) && c.weight_decay >= 0,
          "optimizer.weight_decay: must be 0 or more");
  require(std::isfinite(c.max_grad_norm) && c.max_grad_norm >= 0,
          "optimizer.max_grad_norm: must be 0 or more; 0 does not clip");
}

// Of update number `t`, from 1; without weight decay.
AdamWScalars scalars(const AdamWConfig& c, double norm, double learning_rate, std::int64_t t) {
  const auto steps = static_cast<double>(t);
  const double clip = c.max_grad_norm == 0 ? 1.0 : std::min(1.0, c.max_grad_norm / (norm + 1e-6));
  const double bias1 = 1 - std::pow(c.beta1, steps);
  const double bias2 = 1 - std::pow(c.beta2, steps);
  return {.gradient_scale = static_cast<float>(clip),
          .beta1 = static_cast<float>(c.beta1),
          .one_minus_beta1 = static_cast<float>(1 - c.beta1),
          .beta2 = static_cast<float>(c.beta2),
          .one_minus_beta2 = static_cast<float>(1 - c.beta2),
          .decay = 1,
          .step_size = static_cast<float>(learning_rate / bias1),
          .inverse_sqrt_second = static_cast<float>(1 / std::sqrt(bias2)),
          .epsilon = static_cast<float>(c.epsilon)};
}

std::vector<float> widened(std::span<const std::uint16_t> bf16) {
  std::vector<float> values(bf16.size());
  std::ranges::transform(bf16, values.begin(), [](std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  });
  return values;
}

}  // namespace

AdamW::AdamW(const AdamWConfig& config, std::vector<OptimizerParameter> parameters)
    : config_(config), parameters_(std::move(parameters)) {
  check_config(config_);
  std::set<std::string_view> names;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    OptimizerParameter& parameter = parameters_[p];
    master_.push_back(parameter.weight.empty() ? widened(parameter.bf16_copy)
                                               : std::vector<float>());
    if (parameter.weight.empty()) {
      parameter.weight = master_.back();
    }
    const std::size_t size = parameter.weight.size();
    TANDEM_CHECK(names.insert(parameter.name).second, "{} is trained twice", parameter.name);
    TANDEM_CHECK(parameter.bf16_copy.empty() || parameter.bf16_copy.size() == size,
                 "{} has {} weights and a copy of {}",
                 parameter.name,
                 size,
                 parameter.bf16_copy.size());
    first_.emplace_back(size, 0.0f);
    second_.emplace_back(size, 0.0f);
    for (std::size_t first = 0; first < size; first += kPieceSize) {
      pieces_.push_back({p, first, std::min(kPieceSize, size - first)});
    }
  }
}

void AdamW::check_gradients(std::span<const std::span<const float>> gradients) const {
  TANDEM_CHECK(gradients.size() == parameters_.size(),
               "{} gradients for {} parameters",
               gradients.size(),
               parameters_.size());
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    TANDEM_CHECK(gradients[p].size() == parameters_[p].weight.size(),
                 "{} has {} weights and {} gradients",
                 parameters_[p].name,
                 parameters_[p].weight.size(),
                 gradients[p].size());
  }
}

std::vector<double> AdamW::squares(std::span<const std::span<const float>> gradients) const {
  std::vector<double> sums(pieces_.size());
  compute_pool().parallel_for(static_cast<std::int64_t>(pieces_.size()), [&](std::int64_t i) {
    const Piece& piece = pieces_[static_cast<std::size_t>(i)];
    sums[static_cast<std::size_t>(i)] =
        sum_of_squares(gradients[piece.parameter].subspan(piece.first, piece.size));
  });
  return sums;
}

double AdamW::grad_norm(std::span<const std::span<const float>> gradients) const {
  check_gradients(gradients);
  const auto sums = squares(gradients);
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

OptimizerStep AdamW::step(std::span<const std::span<const float>> gradients, double learning_rate) {
  check_gradients(gradients);
  const auto sums = squares(gradients);
  OptimizerStep result;
  result.grad_norm = std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
  if (!std::isfinite(result.grad_norm)) {
    const auto bad = std::ranges::find_if(sums, [](double sum) { return !std::isfinite(sum); });
    result.skipped = true;
    result.nonfinite =
        parameters_[pieces_[static_cast<std::size_t>(bad - sums.begin())].parameter].name;
    return result;
  }
  ++num_steps_;
  const AdamWScalars plain = scalars(config_, result.grad_norm, learning_rate, num_steps_);
  AdamWScalars decayed = plain;
  decayed.decay = static_cast<float>(1 - learning_rate * config_.weight_decay);
  compute_pool().parallel_for(static_cast<std::int64_t>(pieces_.size()), [&](std::int64_t i) {
    const auto [p, first, size] = pieces_[static_cast<std::size_t>(i)];
    OptimizerParameter& parameter = parameters_[p];
    const auto part = [first = first, size = size](auto span) {
      return span.empty() ? span : span.subspan(first, size);
    };
    adamw_update({.weight = part(parameter.weight),
                  .gradient = part(gradients[p]),
                  .first_moment = part(std::span<float>(first_[p])),
                  .second_moment = part(std::span<float>(second_[p])),
                  .bf16_copy = part(parameter.bf16_copy)},
                 config_.decay_all || parameter.dimensions >= 2 ? decayed : plain);
  });
  return result;
}

void AdamW::set_num_steps(std::int64_t num_steps) {
  TANDEM_CHECK(num_steps >= 0, "num_steps is {}", num_steps);
  num_steps_ = num_steps;
}

std::vector<OptimizerMoments> AdamW::moments() {
  std::vector<OptimizerMoments> result;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    result.push_back({parameters_[p].name, first_[p], second_[p], master_[p]});
  }
  return result;
}

std::int64_t AdamW::state_bytes() const {
  std::size_t floats = 0;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    floats += first_[p].size() + second_[p].size() + master_[p].size();
  }
  return static_cast<std::int64_t>(floats * sizeof(float));
}

}  // namespace tandem::trainer
