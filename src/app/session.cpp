#include "app/session.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/atomic_file.h"
#include "base/error.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostPositions = 32'768;

at::ScalarType working_dtype(const std::string& wanted, const model::ModelConfig& config) {
  const std::string& name = wanted == "auto" ? config.dtype : wanted;
  if (name == "bfloat16") {
    return at::kBFloat16;
  }
  if (name == "float32" || name == "float16") {
    return at::kFloat;
  }
  fail<UserError>("dtype '{}' is none of auto, float32, bfloat16", name);
}

std::int64_t table_positions(const SessionOptions& options, const model::ModelConfig& config) {
  const std::int64_t most = std::min(config.max_positions, kMostPositions);
  if (options.max_positions > config.max_positions) {
    fail<UserError>("{} positions are asked of a model that knows {}",
                    options.max_positions,
                    config.max_positions);
  }
  return options.max_positions > 0 ? options.max_positions : most;
}

void attach_tokenizer(Session& session, std::optional<text::Tokenizer> tokenizer) {
  const auto& config = session.weights->config();
  session.num_ids = config.vocab_size;
  for (const auto id : config.eos_ids) {
    session.stop_ids.push_back(static_cast<TokenId>(id));
  }
  session.tokenizer = std::move(tokenizer);
  if (!session.tokenizer) {
    return;
  }
  session.num_ids = std::min(session.num_ids, session.tokenizer->size());
  if (const auto eos = session.tokenizer->eos_id();
      eos && std::count(session.stop_ids.begin(), session.stop_ids.end(), *eos) == 0) {
    session.stop_ids.push_back(*eos);
  }
  if (const auto source = session.tokenizer->chat_template()) {
    session.chat_template.emplace(*source, *session.tokenizer);
  }
}

Session make_session(const model::ModelConfig& config, const SessionOptions& options) {
  Session session;
  session.weights =
      std::make_unique<model::WeightStore>(config, working_dtype(options.dtype, config));
  session.decoder =
      std::make_unique<model::Decoder>(*session.weights, table_positions(options, config));
  return session;
}

}  // namespace

const text::Tokenizer& Session::need_tokenizer() const {
  if (!tokenizer) {
    fail<UserError>("{}: has no tokenizer.json; give token ids (--ids), or add the file", name);
  }
  return *tokenizer;
}

Session open_session(const std::string& model, const SessionOptions& options) {
  const auto reader = model::CheckpointReader::open(model);
  Session session = make_session(reader.config(), options);
  session.name = model;
  session.weights->load([&](const std::string& name) { return reader.read(name); });
  session.files = reader.companion_files();
  attach_tokenizer(session,
                   reader.has_tokenizer() ? std::optional(reader.tokenizer()) : std::nullopt);
  return session;
}

Session init_session(const std::string& folder, std::uint64_t seed, const SessionOptions& options) {
  const fs::path file = fs::path(folder) / "config.json";
  Session session = make_session(model::parse_config(read_file(file), file.string()), options);
  session.name = folder;
  session.weights->init_random(seed);
  const bool has_tokenizer = fs::exists(fs::path(folder) / "tokenizer.json");
  attach_tokenizer(
      session, has_tokenizer ? std::optional(text::Tokenizer::from_folder(folder)) : std::nullopt);
  if (session.tokenizer) {
    session.files = session.tokenizer->files();
  }
  return session;
}

FrozenCopy frozen_copy(const Session& session) {
  FrozenCopy copy;
  copy.weights =
      std::make_unique<model::WeightStore>(session.weights->config(), session.weights->dtype());
  const auto tensors = session.weights->named_tensors();
  const std::map<std::string, at::Tensor> by_name(tensors.begin(), tensors.end());
  copy.weights->load([&](const std::string& name) { return by_name.at(name); });
  copy.decoder = std::make_unique<model::Decoder>(*copy.weights, session.decoder->max_positions());
  return copy;
}

}  // namespace tandem::app
