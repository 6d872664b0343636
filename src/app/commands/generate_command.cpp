// tandem generate: samples completions of prompts.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/commands/compute_commands.h"
#include "app/compute.h"
#include "app/jsonl.h"
#include "app/prompt_text.h"
#include "app/rl/collect.h"
#include "app/sampling_options.h"
#include "base/error.h"
#include "rollout/engine.h"

namespace tandem::app {
namespace {

using nlohmann::json;

struct GenerateOptions {
  CommonOptions common;
  std::string model, prompt, prompts, ids, dtype = "auto";
  bool raw = false, ignore_eos = false, include_stop = false;
  std::int64_t n = 1, max_new_tokens = 256, min_new_tokens = 0, top_k = 0, seed = 0, logprobs = 0;
  std::int64_t prompt_logprobs = -1;
  SpeculationOptions drafts;
  double temperature = 1, top_p = 1, min_p = 0;
  double repetition_penalty = 1, frequency_penalty = 0, presence_penalty = 0;
  std::vector<std::string> stop, bad_words, logit_bias, allowed_ids, banned_ids;
};

std::vector<Message> messages_from(const json& value, const std::string& place) {
  std::vector<Message> messages;
  for (const auto& entry : value) {
    if (!entry.is_object() || !entry.contains("role") || !entry["role"].is_string() ||
        !entry.contains("content") || !entry["content"].is_string()) {
      fail<UserError>("{}: a message needs a \"role\" and a \"content\", both texts", place);
    }
    messages.push_back({entry["role"].get<std::string>(), entry["content"].get<std::string>()});
  }
  return messages;
}

Prompt prompt_from(const json& value, bool raw, const Session& session, const std::string& place) {
  Prompt prompt;
  prompt.id = place;
  if (value.is_array()) {
    prompt.messages = messages_from(value, place);
  } else if (value.is_string()) {
    prompt.text = value.get<std::string>();
    if (!raw && session.chat_template) {
      prompt.messages = {{"user", prompt.text}};
    }
  } else {
    fail<UserError>("{}: \"prompt\" is neither a text nor a list of messages", place);
  }
  render_prompt(session, prompt);
  return prompt;
}

std::vector<TokenId> ids_from(const json& row, const Session& session, const std::string& place) {
  if (!row.contains("ids") || !row["ids"].is_array()) {
    fail<UserError>("{}: has no list \"ids\"", place);
  }
  std::vector<TokenId> ids;
  const std::int64_t vocabulary = session.decoder->config().vocab_size;
  for (const auto& id : row["ids"]) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 ||
        id.get<std::int64_t>() >= vocabulary) {
      fail<UserError>("{}: id {} is not in [0, {})", place, id.dump(), vocabulary);
    }
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

void set_id(Prompt& prompt, const json& row, std::size_t index) {
  prompt.id = row.contains("id") && row["id"].is_string() ? row["id"].get<std::string>()
                                                          : std::to_string(index);
}

std::vector<DrawnPrompt> read_prompts(const GenerateOptions& options, const Session& session) {
  std::vector<DrawnPrompt> drawn;
  const auto keep = [&](Prompt prompt, const json& row) {
    const std::string place = prompt.id;
    if (prompt.ids.empty()) {
      fail<UserError>("{}: the prompt is empty", place);
    }
    set_id(prompt, row, drawn.size());
    drawn.push_back({static_cast<std::int64_t>(drawn.size()), std::move(prompt)});
  };
  if (!options.prompt.empty()) {
    keep(prompt_from(json(options.prompt), options.raw, session, "--prompt"), json::object());
    return drawn;
  }
  JsonlReader reader(options.ids.empty() ? options.prompts : options.ids);
  while (const auto row = reader.next()) {
    Prompt prompt;
    if (!options.ids.empty()) {
      prompt.ids = ids_from(*row, session, reader.place());
      prompt.id = reader.place();
    } else if (row->contains("prompt")) {
      prompt = prompt_from((*row)["prompt"], options.raw, session, reader.place());
    } else {
      fail<UserError>("{}: has no \"prompt\"", reader.place());
    }
    keep(std::move(prompt), *row);
  }
  reader.need_rows();
  return drawn;
}

rollout::SamplingParams sampling_params(const GenerateOptions& options, const Session& session) {
  rollout::SamplingParams params;
  params.temperature = options.temperature;
  params.top_p = options.top_p;
  params.min_p = options.min_p;
  params.top_k = static_cast<std::int32_t>(options.top_k);
  params.repetition_penalty = options.repetition_penalty;
  params.frequency_penalty = options.frequency_penalty;
  params.presence_penalty = options.presence_penalty;
  params.logit_bias = parse_logit_bias(options.logit_bias);
  params.allowed_ids = parse_token_ids(options.allowed_ids, "--allowed-token-ids");
  params.banned_ids = parse_token_ids(options.banned_ids, "--banned-token-ids");
  params.max_new_tokens = options.max_new_tokens;
  params.min_new_tokens = options.min_new_tokens;
  params.include_stop = options.include_stop;
  params.stop_strings = options.stop;
  params.ignore_eos = options.ignore_eos;
  params.seed = static_cast<std::uint64_t>(options.seed);
  params.num_top_logprobs = static_cast<std::int32_t>(options.logprobs);
  params.num_prompt_logprobs = static_cast<std::int32_t>(options.prompt_logprobs);
  return complete_sampling(std::move(params), options.bad_words, session);
}

std::string top_json(const std::vector<std::vector<std::pair<TokenId, float>>>& top) {
  std::string text = "[";
  for (std::size_t t = 0; t < top.size(); ++t) {
    text += t == 0 ? "[" : ",[";
    for (std::size_t i = 0; i < top[t].size(); ++i) {
      text += fmt::format(
          "{}[{},{}]", i == 0 ? "" : ",", top[t][i].first, json_number(top[t][i].second));
    }
    text += "]";
  }
  return text + "]";
}

std::string record(const rollout::FinishedSample& sample,
                   const Prompt& prompt,
                   const Session& session,
                   const GenerateOptions& options) {
  const bool cut = sample.stop.reason == FinishReason::kStopString;
  const std::string text =
      cut ? sample.text : (session.tokenizer ? session.tokenizer->decode(sample.ids, true) : "");
  JsonObject object;
  object.add("id", prompt.id)
      .add("index", std::int64_t{sample.sample})
      .add("prompt_ids", std::span<const std::int32_t>(prompt.ids))
      .add("ids", std::span<const std::int32_t>(sample.ids))
      .add("text", text)
      .add("logprobs", std::span<const float>(sample.logprobs))
      .add("finish_reason", name_of(sample.stop.reason));
  if (sample.stop.id) {
    object.add("stop", std::int64_t{*sample.stop.id});
  } else if (cut) {
    object.add("stop", sample.stop.string);
  }
  if (options.logprobs > 0) {
    object.add_json("top_logprobs", top_json(sample.top));
    object.add_json("ranks", fmt::format("[{}]", fmt::join(sample.ranks, ",")));
  }
  if (!sample.sampled_logprobs.empty()) {
    object.add("sampled_logprobs", std::span<const float>(sample.sampled_logprobs));
  }
  if (options.prompt_logprobs >= 0) {
    object.add("prompt_logprobs", std::span<const float>(sample.prompt.logprobs));
  }
  if (options.prompt_logprobs > 0) {
    object.add_json("prompt_top_logprobs", top_json(sample.prompt.top));
  }
  return object.str();
}

std::int64_t kv_bytes(const std::vector<DrawnPrompt>& prompts,
                      const GenerateOptions& options,
                      const Session& session) {
  std::int64_t longest = 0;
  for (const auto& drawn : prompts) {
    longest = std::max(longest, static_cast<std::int64_t>(drawn.prompt.ids.size()));
  }
  const std::int64_t per_group = longest + 32 + options.n * (options.max_new_tokens + 48);
  const std::int64_t groups =
      std::min<std::int64_t>(static_cast<std::int64_t>(prompts.size()), 1 + 256 / options.n);
  const std::int64_t per_token =
      rollout::kv_bytes_per_token(session.decoder->config(), session.weights->dtype());
  return std::min((groups * per_group + 32) * per_token, available_memory_bytes() / 2);
}

int run_generate(const GenerateOptions& options) {
  const int sources = (options.prompt.empty() ? 0 : 1) + (options.prompts.empty() ? 0 : 1) +
                      (options.ids.empty() ? 0 : 1);
  if (sources != 1) {
    fail<UserError>("give one of --prompt, --prompts and --ids");
  }
  if (options.n < 1 || options.n > 100'000) {
    fail<UserError>("--n is {}; use 1 or more", options.n);
  }
  if (options.seed < 0) {
    fail<UserError>("--seed is {}; use 0 or more", options.seed);
  }
  (void)options.drafts.config();  // refused before the model is opened
  set_up_compute({options.common.threads, options.common.isa, options.common.arithmetic});
  const Session session = open_session(options.model, {.dtype = options.dtype});
  const auto params = sampling_params(options, session);
  const auto prompts = read_prompts(options, session);
  LineWriter out(options.common.json);
  rollout::EngineConfig config;
  config.num_ids = session.num_ids;
  config.kv_bytes = kv_bytes(prompts, options, session);
  config.speculation = options.drafts.config();
  rollout::Engine engine(*session.decoder, config, text_sinks(session));
  for (const auto& drawn : prompts) {
    rollout::GroupRequest request;
    request.draw = drawn.draw;
    request.num_samples = static_cast<std::int32_t>(options.n);
    request.prompt = drawn.prompt.ids;
    request.params = params;
    engine.add(std::move(request));
  }
  auto samples = engine.run();
  std::sort(samples.begin(), samples.end(), [](const auto& a, const auto& b) {
    return std::pair(a.draw, a.sample) < std::pair(b.draw, b.sample);
  });
  for (const auto& sample : samples) {
    out.write(
        record(sample, prompts[static_cast<std::size_t>(sample.draw)].prompt, session, options));
  }
  out.finish();
  return 0;
}

}  // namespace

void set_up_generate(CommandLine& line) {
  const auto options = std::make_shared<GenerateOptions>();
  line.need("--model", options->model, "Hugging Face folder, .gguf file, or org/name in the cache");
  line.add("--prompt", options->prompt, "one prompt");
  line.add("--prompts", options->prompts, "JSONL file of prompts, or -");
  line.add("--ids", options->ids, "JSONL file of token ids, or -");
  line.add("--n", options->n, "samples a prompt");
  line.add("--max-new-tokens", options->max_new_tokens, "longest completion");
  line.add("--temperature", options->temperature, "0: greedy");
  line.add("--top-p", options->top_p, "likeliest tokens that hold this probability");
  line.add("--top-k", options->top_k, "so many likeliest tokens; 0: all");
  line.add("--min-p", options->min_p, "tokens at least this share as likely as the likeliest");
  line.add("--repetition-penalty", options->repetition_penalty, "above 1: less repetition");
  line.add("--frequency-penalty", options->frequency_penalty, "for each time a token was drawn");
  line.add("--presence-penalty", options->presence_penalty, "for tokens that were drawn");
  line.add("--logit-bias", options->logit_bias, "ID:BIAS, added to a logit; may be repeated");
  line.add("--allowed-token-ids", options->allowed_ids, "ID,ID,...: only these are drawn");
  line.add("--banned-token-ids", options->banned_ids, "ID,ID,...: these are not drawn");
  line.add("--bad-words", options->bad_words, "text that is never completed; may be repeated");
  line.add("--min-new-tokens", options->min_new_tokens, "no end before so many tokens");
  line.add("--seed", options->seed, "of the random numbers");
  line.add("--stop", options->stop, "text that ends a completion; may be repeated");
  line.flag("--include-stop", options->include_stop, "the text keeps the --stop that ended it");
  line.flag("--ignore-eos", options->ignore_eos, "end tokens end nothing");
  line.flag("--raw", options->raw, "the prompt is raw text, without the chat template");
  line.add("--logprobs", options->logprobs, "likeliest tokens to report at each place");
  line.add("--prompt-logprobs",
           options->prompt_logprobs,
           "log-probabilities of the prompt, with so many likeliest tokens; -1: none");
  line.add("--speculation", options->drafts.method, "ngram: guesses tokens from the text; or none");
  line.add("--num-speculative-tokens", options->drafts.num_tokens, "tokens guessed a step");
  line.add("--prompt-lookup-max", options->drafts.lookup_max, "most tokens that must agree");
  line.add("--prompt-lookup-min", options->drafts.lookup_min, "fewest tokens that must agree");
  line.add("--dtype", options->dtype, "auto, float32 or bfloat16");
  add_common_options(line, options->common);
  line.run([options] { return run_generate(*options); });
}

}  // namespace tandem::app
