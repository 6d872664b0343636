#include "data/stream.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include <nlohmann/json.hpp>

#include "base/counter_rng.h"
#include "base/error.h"

namespace tandem::data {
namespace {

// FNV-1a: Fowler, Noll and Vo, draft-eastlake-fnv.
class Fingerprint {
 public:
  void add(std::span<const unsigned char> bytes) {
    for (const unsigned char byte : bytes) {
      hash_ = (hash_ ^ byte) * 1099511628211ull;
    }
  }
  void add(const std::string& text) {
    add({reinterpret_cast<const unsigned char*>(text.data()), text.size()});
    add(std::vector<TokenId>{static_cast<TokenId>(text.size())});
  }
  void add(const std::vector<TokenId>& ids) {
    add({reinterpret_cast<const unsigned char*>(ids.data()), ids.size() * sizeof(TokenId)});
  }
  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 14695981039346656037ull;
};

std::string hex(std::uint64_t value) {
  return fmt::format("{:016x}", value);
}

}  // namespace

LastBatch last_batch_from(const std::string& name) {
  if (name == "wrap") {
    return LastBatch::kWrap;
  }
  if (name == "drop") {
    return LastBatch::kDrop;
  }
  if (name == "short") {
    return LastBatch::kShort;
  }
  fail<UserError>("data.last_batch: unknown value {}; known are wrap, drop, short", name);
}

StreamSource stream_source(const PromptSource& source, double weight) {
  Fingerprint fingerprint;
  for (const Prompt& prompt : source.prompts) {
    fingerprint.add(prompt.ids);
    fingerprint.add(prompt.row_json);
  }
  return {
      source.path, static_cast<std::int64_t>(source.prompts.size()), weight, fingerprint.value()};
}

StreamSource stream_source(const SftSource& source, double weight) {
  Fingerprint fingerprint;
  for (const SftSequence& sequence : source.sequences) {
    fingerprint.add(sequence.ids);
    fingerprint.add(sequence.mask);
  }
  return {
      source.path, static_cast<std::int64_t>(source.sequences.size()), weight, fingerprint.value()};
}

DrawStream::DrawStream(std::vector<StreamSource> sources, const StreamConfig& config)
    : sources_(std::move(sources)),
      config_(config),
      drawn_(sources_.size(), 0),
      orders_(sources_.size()) {
  TANDEM_CHECK(config_.rows_per_step > 0, "rows_per_step is {}", config_.rows_per_step);
  std::int64_t num_rows = 0;
  for (const StreamSource& source : sources_) {
    TANDEM_CHECK(source.num_rows > 0 && source.weight > 0,
                 "{} has {} rows and weight {}",
                 source.path,
                 source.num_rows,
                 source.weight);
    num_rows += source.num_rows;
  }
  if (num_rows < config_.rows_per_step) {
    fail<UserError>(
        "{}: {} rows are left after filtering, one step takes {}; give more data or "
        "make the step smaller",
        sources_.empty() ? "data" : sources_.front().path,
        num_rows,
        config_.rows_per_step);
  }
}

std::int64_t DrawStream::draws_per_epoch() const {
  std::int64_t num_rows = 0;
  for (const StreamSource& source : sources_) {
    num_rows += source.num_rows;
  }
  const bool drops = sources_.size() == 1 && config_.last_batch == LastBatch::kDrop;
  return drops ? num_rows - num_rows % config_.rows_per_step : num_rows;
}

double DrawStream::epoch() const {
  return static_cast<double>(num_draws_) / static_cast<double>(draws_per_epoch());
}

std::int64_t DrawStream::steps_for_epochs(double epochs) const {
  const std::int64_t size = draws_per_epoch();
  const std::int64_t step = config_.rows_per_step;
  if (sources_.size() == 1 && config_.last_batch == LastBatch::kShort) {
    const auto whole = static_cast<std::int64_t>(std::floor(epochs));
    const double rest = (epochs - static_cast<double>(whole)) * static_cast<double>(size);
    return whole * ((size + step - 1) / step) +
           static_cast<std::int64_t>(std::ceil(rest / static_cast<double>(step)));
  }
  const double draws = epochs * static_cast<double>(size);
  return static_cast<std::int64_t>(std::ceil(draws / static_cast<double>(step)));
}

std::vector<Draw> DrawStream::next_step() {
  std::int64_t count = config_.rows_per_step;
  if (sources_.size() == 1 && config_.last_batch == LastBatch::kShort) {
    const std::int64_t left = draws_per_epoch() - num_draws_ % draws_per_epoch();
    count = std::min(count, left);
  }
  std::vector<Draw> draws;
  while (static_cast<std::int64_t>(draws.size()) < count) {
    draws.push_back(draw_next());
  }
  return draws;
}

Draw DrawStream::draw_next() {
  Draw draw;
  draw.draw = num_draws_;
  draw.source = choose_source(draw.draw);
  const std::int64_t per_epoch =
      sources_.size() == 1 ? draws_per_epoch() : sources_[draw.source].num_rows;
  draw.epoch = drawn_[draw.source] / per_epoch;
  draw.row = row_at(draw.source, draw.epoch, drawn_[draw.source] % per_epoch);
  ++drawn_[draw.source];
  ++num_draws_;
  return draw;
}

std::size_t DrawStream::choose_source(std::int64_t draw) const {
  if (sources_.size() == 1) {
    return 0;
  }
  RandomKey key;
  key.seed = config_.seed;
  key.draw = static_cast<std::uint64_t>(draw);
  key.turn = 1;  // turn 0 is the permutations'
  key.purpose = RandomPurpose::kShuffleData;
  double total = 0;
  for (const StreamSource& source : sources_) {
    total += source.weight;
  }
  double left = random_uniform(key) * total;
  for (std::size_t i = 0; i + 1 < sources_.size(); ++i) {
    left -= sources_[i].weight;
    if (left < 0) {
      return i;
    }
  }
  return sources_.size() - 1;
}

std::int64_t DrawStream::row_at(std::size_t source, std::int64_t epoch, std::int64_t position) {
  if (!config_.shuffle) {
    return position;
  }
  Order& order = orders_[source];
  if (order.epoch != epoch) {
    order.epoch = epoch;
    order.rows.resize(static_cast<std::size_t>(sources_[source].num_rows));
    std::iota(order.rows.begin(), order.rows.end(), 0);
    RandomKey key;
    key.seed = config_.seed;
    key.draw = static_cast<std::uint64_t>(epoch);
    key.sample = static_cast<std::uint32_t>(source);
    key.purpose = RandomPurpose::kShuffleData;
    for (std::size_t i = order.rows.size(); i > 1; --i) {  // Fisher and Yates
      key.position = static_cast<std::uint32_t>(i);
      std::swap(order.rows[i - 1], order.rows[random_below(key, i)]);
    }
  }
  return order.rows[static_cast<std::size_t>(position)];
}

std::string DrawStream::state() const {
  nlohmann::json state;
  state["seed"] = config_.seed;
  state["draws"] = num_draws_;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    state["sources"].push_back({{"rows", sources_[i].num_rows},
                                {"fingerprint", hex(sources_[i].fingerprint)},
                                {"drawn", drawn_[i]}});
  }
  return state.dump();
}

void DrawStream::restore(const std::string& text, const std::string& origin) {
  try {
    const auto state = nlohmann::json::parse(text);
    const auto& saved = state.at("sources");
    if (state.at("seed").get<std::uint64_t>() != config_.seed) {
      fail<UserError>("seed: is {}, the checkpoint was made with {}",
                      config_.seed,
                      state.at("seed").get<std::uint64_t>());
    }
    if (saved.size() != sources_.size()) {
      fail<UserError>("data: {} files are given, the checkpoint was made with {}",
                      sources_.size(),
                      saved.size());
    }
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (saved[i].at("fingerprint").get<std::string>() != hex(sources_[i].fingerprint)) {
        fail<UserError>(
            "{}: differs from when the checkpoint was made ({} usable rows then, {} "
            "now); restore it, or start anew with --resume never",
            sources_[i].path,
            saved[i].at("rows").get<std::int64_t>(),
            sources_[i].num_rows);
      }
      drawn_[i] = saved[i].at("drawn").get<std::int64_t>();
    }
    num_draws_ = state.at("draws").get<std::int64_t>();
  } catch (const nlohmann::json::exception& e) {
    fail<UserError>("{}: its state of the data is damaged: {}", origin, e.what());
  }
}

}  // namespace tandem::data
