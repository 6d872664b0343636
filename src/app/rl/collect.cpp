#include "app/rl/collect.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "text/detokenizer.h"

namespace tandem::app {
namespace {

class DetokenizerSink final : public rollout::TextSink {
 public:
  explicit DetokenizerSink(const text::Tokenizer& tokenizer) : detokenizer_(tokenizer) {}
  std::string push(TokenId id) override { return detokenizer_.push(id); }
  std::string finish() override { return detokenizer_.finish(); }

 private:
  text::Detokenizer detokenizer_;
};

Trajectory to_trajectory(const Session& session,
                         const Prompt& prompt,
                         rollout::FinishedSample sample) {
  Trajectory t;
  t.draw = sample.draw;
  t.sample = sample.sample;
  t.ids = prompt.ids;
  t.prompt_length = static_cast<std::int64_t>(prompt.ids.size());
  t.ids.insert(t.ids.end(), sample.ids.begin(), sample.ids.end());
  t.mask.assign(sample.ids.size(), 1);
  t.logprobs = std::move(sample.logprobs);
  t.allowed = std::move(sample.allowed);
  t.versions = std::move(sample.versions);
  t.kept_rows = std::move(sample.kept_rows);
  t.kept_rows.resize(std::min(t.kept_rows.size(), t.ids.size() - 1));  // behind them: wrong guesses
  t.finish_reason = sample.stop.reason;
  t.stop_id = sample.stop.id;
  if (session.tokenizer) {
    t.text = sample.stop.reason == FinishReason::kStopString
                 ? sample.text
                 : session.tokenizer->decode(sample.ids, true);
  }
  return t;
}

}  // namespace

rollout::TextSinkFactory text_sinks(const Session& session) {
  if (!session.tokenizer) {
    return {};
  }
  return [&tokenizer = *session.tokenizer](std::span<const TokenId>) {
    return std::make_unique<DetokenizerSink>(tokenizer);
  };
}

std::vector<Group> collect(rollout::Engine& engine,
                           const Session& session,
                           std::span<const DrawnPrompt> prompts,
                           std::int32_t num_samples,
                           const rollout::SamplingParams& params) {
  std::map<std::int64_t, std::size_t> group_of_draw;
  std::vector<Group> groups;
  for (const auto& drawn : prompts) {
    group_of_draw[drawn.draw] = groups.size();
    Group& group = groups.emplace_back();
    group.draw = drawn.draw;
    group.prompt = drawn.prompt;
    group.trajectories.resize(static_cast<std::size_t>(num_samples));
    rollout::GroupRequest request;
    request.draw = drawn.draw;
    request.num_samples = num_samples;
    request.prompt = drawn.prompt.ids;
    request.params = params;
    engine.add(std::move(request));
  }
  TANDEM_CHECK(group_of_draw.size() == groups.size(), "two prompts have the same draw");
  for (auto& sample : engine.run()) {
    Group& group = groups[group_of_draw.at(sample.draw)];
    const auto index = static_cast<std::size_t>(sample.sample);
    group.trajectories[index] = to_trajectory(session, group.prompt, std::move(sample));
  }
  return groups;
}

}  // namespace tandem::app
