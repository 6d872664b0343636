// tandem reward: reward functions over completions that are there already.
#include <memory>

#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/jsonl.h"
#include "app/reward_configs.h"
#include "base/error.h"
#include "base/log.h"
#include "data/columns.h"
#include "data/row_reader.h"

namespace tandem::app {
namespace {

constexpr std::size_t kBatch = 256;  // samples handed to the functions at once

struct Options {
  std::vector<std::string> rewards;
  std::string data = "-";
  std::string json;
};

struct Sample {
  rewards::RewardSample sample;
  std::optional<std::int64_t> index;  // in the row's "completions"
};

// A text, or a list of messages whose contents are joined.
std::string text_of(const nlohmann::json& value, const std::string& place) {
  if (!value.is_array()) {
    return data::column_text(value);
  }
  std::string text;
  for (const Message& message : data::parse_messages(value, place)) {
    text += (text.empty() ? "" : "\n") + message.content;
  }
  return text;
}

rewards::RewardSample sample_of(const nlohmann::json& row, const std::string& place) {
  rewards::RewardSample sample;
  sample.id = data::row_id(row, {}, place);
  if (const auto* prompt = data::choose_column(row, "", data::prompt_columns(), place)) {
    sample.prompt_text = text_of(*prompt, place);
    if (prompt->is_array()) {
      sample.messages = data::parse_messages(*prompt, place);
    }
  }
  if (const auto* answer = data::choose_column(row, "", data::answer_columns(), place)) {
    sample.ground_truth = data::column_text(*answer);
  }
  if (const auto finish = row.find("finish_reason"); finish != row.end() && finish->is_string()) {
    sample.finish_reason = finish->get<std::string>();
  }
  sample.columns_json = row.dump();
  return sample;
}

// One sample a completion of the row.
std::vector<Sample> samples_of(const nlohmann::json& row, const std::string& place) {
  rewards::RewardSample base = sample_of(row, place);
  std::vector<Sample> samples;
  if (const auto one = row.find("completion"); one != row.end()) {
    base.completion = text_of(*one, place);
    samples.push_back({std::move(base), std::nullopt});
    return samples;
  }
  const auto several = row.find("completions");
  if (several == row.end() || !several->is_array()) {
    fail<UserError>("{}: has no completion and no list of completions; its columns are {}",
                    place,
                    data::column_list(row));
  }
  for (const auto& completion : *several) {
    rewards::RewardSample sample = base;
    sample.completion = text_of(completion, place);
    samples.push_back({std::move(sample), static_cast<std::int64_t>(samples.size())});
  }
  return samples;
}

std::string line_of(const Sample& sample,
                    const std::vector<rewards::RewardConfig>& configs,
                    const std::vector<std::vector<rewards::Score>>& scores,
                    std::size_t i) {
  JsonObject values;
  JsonObject failures;
  for (std::size_t f = 0; f < configs.size(); ++f) {
    const rewards::Score& score = scores[f][i];
    values.add_json(configs[f].name, score.value ? json_number(*score.value) : "null");
    if (!score.failure.empty()) {
      failures.add(configs[f].name, std::string_view(score.failure));
    }
  }
  JsonObject line;
  line.add("id", std::string_view(sample.sample.id));
  if (sample.index) {
    line.add("index", *sample.index);
  }
  return line.add_json("rewards", values.str()).add_json("failures", failures.str()).str();
}

void score_batch(std::vector<Sample>& batch, rewards::RewardSet& rewards, LineWriter& writer) {
  std::vector<rewards::RewardSample> samples;
  for (const Sample& sample : batch) {
    samples.push_back(sample.sample);
  }
  const auto scores = rewards.score(samples, /*step=*/0);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    writer.write(line_of(batch[i], rewards.configs(), scores, i));
  }
  batch.clear();
}

int run(const Options& options) {
  if (options.rewards.empty()) {
    fail<UserError>("--reward is missing; give at least one");
  }
  rewards::RewardSet rewards(reward_configs_of_specs(options.rewards));
  JsonlReader reader(options.data);
  std::optional<LineWriter> writer;  // opened when there is something to write
  std::vector<Sample> batch;
  const auto score = [&] {
    if (!writer) {
      writer.emplace(options.json);
    }
    score_batch(batch, rewards, *writer);
  };
  while (const auto row = reader.next()) {
    for (Sample& sample : samples_of(*row, reader.place())) {
      batch.push_back(std::move(sample));
    }
    if (batch.size() >= kBatch) {
      score();
    }
  }
  reader.need_rows();
  score();
  writer->finish();
  for (std::size_t f = 0; f < rewards.configs().size(); ++f) {
    const auto stats = rewards.stats(f);
    TANDEM_LOG(info,
               "{}: {} samples, {} failures, {} restarts",
               rewards.configs()[f].name,
               stats.scored,
               stats.failures,
               stats.restarts);
  }
  return 0;
}

}  // namespace

void set_up_reward(CommandLine& line) {
  const auto options = std::make_shared<Options>();
  line.add("--reward",
           options->rewards,
           "kind[:key=value,...], FILE.so[:name], FILE.py:function, or a YAML file with rewards:; "
           "may be given again");
  line.add("--data", options->data, "rows {\"completion\" or \"completions\", ...}; - is input");
  line.add("--json", options->json, "write to this file instead of standard output");
  line.run([options] { return run(*options); });
}

}  // namespace tandem::app
