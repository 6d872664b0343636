// tandem score: teacher-forced log-probabilities and entropies of given ids.
#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "app/commands/compute_commands.h"
#include "app/compute.h"
#include "app/jsonl.h"
#include "app/session.h"
#include "base/allowed_logprob.h"
#include "base/error.h"
#include "kernels/vocab.h"
#include "trainer/packed_pass.h"

namespace tandem::app {
namespace {

using nlohmann::json;

constexpr std::int64_t kRowsPerPass = 2048;

struct ScoreOptions {
  CommonOptions common;
  std::string model, ids, dtype = "auto";
  double temperature = 1;
  std::int64_t top = 0;
};

struct Row {
  std::string id;
  std::vector<TokenId> ids;
};

std::vector<Row> read_rows(const ScoreOptions& options, const Session& session) {
  const std::int64_t vocabulary = session.decoder->config().vocab_size;
  std::vector<Row> rows;
  JsonlReader reader(options.ids);
  while (const auto object = reader.next()) {
    Row row;
    if (!object->contains("ids") || !(*object)["ids"].is_array()) {
      fail<UserError>("{}: has no list \"ids\"", reader.place());
    }
    for (const auto& id : (*object)["ids"]) {
      if (!id.is_number_integer() || id.get<std::int64_t>() < 0 ||
          id.get<std::int64_t>() >= vocabulary) {
        fail<UserError>("{}: id {} is not in [0, {})", reader.place(), id.dump(), vocabulary);
      }
      row.ids.push_back(id.get<TokenId>());
    }
    if (row.ids.empty()) {
      fail<UserError>("{}: \"ids\" is empty", reader.place());
    }
    if (static_cast<std::int64_t>(row.ids.size()) > session.decoder->max_positions()) {
      fail<UserError>("{}: {} ids, the model knows {} positions",
                      reader.place(),
                      row.ids.size(),
                      session.decoder->max_positions());
    }
    row.id = object->contains("id") && (*object)["id"].is_string()
                 ? (*object)["id"].get<std::string>()
                 : std::to_string(rows.size());
    rows.push_back(std::move(row));
  }
  reader.need_rows();
  return rows;
}

// The likeliest ids after each position of one sequence but the last, as JSON.
std::string top_json(const Session& session, const Row& row, const ScoreOptions& options) {
  const at::NoGradGuard no_grad;
  const auto n = static_cast<std::int64_t>(row.ids.size());
  model::RowBatch batch;
  batch.ids = at::from_blob(const_cast<TokenId*>(row.ids.data()), {n}, at::kInt);
  batch.paths.positions = at::arange(n, at::kInt);
  batch.paths.path_start = at::zeros({n}, at::kLong);
  batch.paths.key_slots = at::arange(n, at::kInt);
  const auto hidden = session.decoder->forward(batch, {});
  const float scale = inverse_temperature(options.temperature);
  std::string text = "[";
  for (std::int64_t t = 0; t + 1 < n; ++t) {
    const auto logits =
        kernels::logits(hidden.narrow(0, t, 1), session.weights->head())[0].contiguous();
    const auto over = kernels::reduce_logits(logits.data_ptr<float>(), session.num_ids, scale);
    const auto best =
        logits.narrow(0, 0, session.num_ids).topk(std::min(options.top, session.num_ids));
    text += t == 0 ? "[" : ",[";
    for (std::int64_t i = 0; i < std::get<1>(best).size(0); ++i) {
      const auto id = std::get<1>(best)[i].item<std::int64_t>();
      const float value = logprob_of(std::get<0>(best)[i].item<float>(), scale, over);
      text += fmt::format("{}[{},{}]", i == 0 ? "" : ",", id, json_number(value));
    }
    text += "]";
  }
  return text + "]";
}

void score_rows(std::span<const Row> rows,
                const Session& session,
                const ScoreOptions& options,
                LineWriter& out) {
  std::vector<std::vector<std::uint8_t>> wanted;
  for (const auto& row : rows) {
    wanted.emplace_back(row.ids.size() - 1, 1);
  }
  std::vector<trainer::PackSequence> packs;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    packs.push_back({.ids = rows[i].ids, .prompt_length = 1, .wanted = wanted[i]});
  }
  const std::vector<AllowedSet> all;
  const std::vector<const std::vector<AllowedSet>*> allowed(packs.size(), &all);
  const trainer::PackedPass pass(*session.decoder,
                                 packs,
                                 allowed,
                                 {.temperature = options.temperature, .num_ids = session.num_ids});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    JsonObject object;
    object.add("id", rows[i].id)
        .add("logprobs", std::span<const float>(pass.logprobs()[i]))
        .add("entropies", std::span<const float>(pass.entropies()[i]));
    if (options.top > 0) {
      object.add_json("top", top_json(session, rows[i], options));
    }
    out.write(object.str());
  }
}

int run_score(const ScoreOptions& options) {
  if (!(options.temperature >= 0)) {
    fail<UserError>("--temperature is {}; use 0 or more", options.temperature);
  }
  set_up_compute({options.common.threads, options.common.isa, options.common.arithmetic});
  const Session session = open_session(options.model, {.dtype = options.dtype});
  const auto rows = read_rows(options, session);
  LineWriter out(options.common.json);
  for (std::size_t first = 0; first < rows.size();) {
    // As many sequences at a time as the rows allow; each gets the same bits in any company.
    std::size_t last = first;
    std::int64_t total = 0;
    while (last < rows.size() &&
           (last == first ||
            total + static_cast<std::int64_t>(rows[last].ids.size()) <= kRowsPerPass)) {
      total += static_cast<std::int64_t>(rows[last++].ids.size());
    }
    score_rows(std::span(rows).subspan(first, last - first), session, options, out);
    first = last;
  }
  out.finish();
  return 0;
}

}  // namespace

void set_up_score(CommandLine& line) {
  const auto options = std::make_shared<ScoreOptions>();
  line.need("--model", options->model, "Hugging Face folder, .gguf file, or org/name in the cache");
  line.need("--ids", options->ids, "JSONL file of token ids, or -");
  line.add("--temperature", options->temperature, "divides the logits; 0 counts as 1");
  line.add("--top", options->top, "likeliest tokens to report after each position");
  line.add("--dtype", options->dtype, "auto, float32 or bfloat16");
  add_common_options(line, options->common);
  line.run([options] { return run_score(*options); });
}

}  // namespace tandem::app
