// tandem tokenize: JSON lines of text to token ids, or back.
#include <memory>

#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/jsonl.h"
#include "app/open_tokenizer.h"
#include "base/error.h"

namespace tandem::app {
namespace {

struct Options {
  std::string model;
  std::string file = "-";
  std::string json;
  bool decode = false;
};

// A boolean of a row; `fallback` where the row has none.
bool flag_of(const nlohmann::json& row, const char* key, bool fallback, const std::string& place) {
  const auto found = row.find(key);
  if (found == row.end()) {
    return fallback;
  }
  if (!found->is_boolean()) {
    fail<UserError>("{}: {} wants true or false, not {}", place, key, found->dump());
  }
  return found->get<bool>();
}

std::vector<text::TokenId> ids_of(const nlohmann::json& row,
                                  const text::Tokenizer& tokenizer,
                                  const std::string& place) {
  const auto found = row.find("ids");
  if (found == row.end() || !found->is_array()) {
    fail<UserError>("{}: wants {{\"ids\": [...]}}", place);
  }
  std::vector<text::TokenId> ids;
  for (const auto& id : *found) {
    const bool fits = id.is_number_integer() && id.get<double>() >= 0 &&
                      id.get<double>() < static_cast<double>(tokenizer.size());
    if (!fits) {
      fail<UserError>("{}: id {} is not in [0, {})", place, id.dump(), tokenizer.size());
    }
    ids.push_back(id.get<text::TokenId>());
  }
  return ids;
}

std::string encode_row(const nlohmann::json& row,
                       const text::Tokenizer& tokenizer,
                       const std::string& place) {
  const auto found = row.find("text");
  if (found == row.end() || !found->is_string()) {
    fail<UserError>("{}: wants {{\"text\": \"...\"}}", place);
  }
  const bool special = flag_of(row, "add_special_tokens", true, place);
  const auto ids = tokenizer.encode(found->get<std::string>(), {.add_special_tokens = special});
  return JsonObject().add("ids", ids).str();
}

std::string decode_row(const nlohmann::json& row,
                       const text::Tokenizer& tokenizer,
                       const std::string& place) {
  const bool skip = flag_of(row, "skip_special_tokens", false, place);
  return JsonObject().add("text", tokenizer.decode(ids_of(row, tokenizer, place), skip)).str();
}

int run(const Options& options) {
  const auto tokenizer = open_tokenizer(options.model);
  JsonlReader reader(options.file);
  LineWriter writer(options.json);
  while (const auto row = reader.next()) {
    const auto convert = options.decode ? decode_row : encode_row;
    writer.write(convert(*row, tokenizer, reader.place()));
  }
  writer.finish();
  return 0;
}

}  // namespace

void set_up_tokenize(CommandLine& line) {
  const auto options = std::make_shared<Options>();
  line.need("--model", options->model, "a folder, a .gguf file, or org/name in the cache");
  line.flag("--decode", options->decode, "ids to text");
  line.add("--json", options->json, "write to this file instead of standard output");
  line.word("FILE", options->file, "rows {\"text\"} or, to decode, {\"ids\"}; - is standard input");
  line.run([options] { return run(*options); });
}

}  // namespace tandem::app
