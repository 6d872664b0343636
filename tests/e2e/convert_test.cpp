// A model in other forms is the same model: converted, in the Hugging Face cache, inspected.
#include <filesystem>

#include <doctest/doctest.h>

#include "support/json_rows.h"
#include "support/temporary_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

const std::string kGguf = "tests/golden/gguf/llama-tied-q8_0.gguf";
const std::string kFolder = "tests/golden/models/llama-tied";

std::string convert(const std::string& source,
                    const fs::path& target,
                    const std::string& dtype = "float32") {
  const auto result = test::run_program({"convert", source, target.string(), "--dtype", dtype});
  REQUIRE_MESSAGE(result.status == 0, result.err);
  return target.string();
}

std::string scored(const std::string& model, const std::string& dtype = "float32") {
  const test::TemporaryFolder folder;
  const auto ids = test::write_ids(folder / "ids.jsonl", {{54, 135, 218, 156, 210}, {1, 2, 3}});
  const auto result =
      test::run_program({"score", "--model", model, "--ids", ids, "--top", "3", "--dtype", dtype});
  REQUIRE_MESSAGE(result.status == 0, result.err);
  return result.out;
}

TEST_CASE("a GGUF file and the folder converted from it score the same bits") {
  const test::TemporaryFolder folder;
  const std::string whole = scored(kGguf);
  CHECK(scored(convert(kGguf, folder / "folder")) == whole);
  CHECK(whole != scored(kFolder));  // q8_0 rounds
  // To a type of lower precision and up again: what bfloat16 makes of the same weights.
  const auto rounded = convert(kGguf, folder / "rounded", "bfloat16");
  CHECK(scored(rounded, "bfloat16") == scored(kGguf, "bfloat16"));
  CHECK(scored(rounded) != whole);
}

TEST_CASE("a folder converted again and again scores the same bits; its files are few") {
  const test::TemporaryFolder folder;
  const auto once = convert(kFolder, folder / "once");
  const auto twice = convert(once, folder / "twice");
  convert(once, folder / "twice");  // replaced whole
  CHECK(scored(once) == scored(kFolder));
  CHECK(scored(twice) == scored(kFolder));
  for (const char* file : {"config.json", "generation_config.json", "model.safetensors"}) {
    CHECK_MESSAGE(fs::exists(fs::path(twice) / file), file);
  }
  CHECK(read_file(fs::path(once) / "model.safetensors") ==
        read_file(fs::path(twice) / "model.safetensors"));
}

TEST_CASE("convert refuses to overwrite its source or what is no model") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder / "notes.txt", "mine");
  for (const auto& target : {kFolder, folder.path().string()}) {
    const auto result = test::run_program({"convert", kFolder, target});
    CHECK(result.status == 2);
    CHECK(result.err.find(target) != std::string::npos);
    CHECK(result.num_error_lines() == 1);
  }
  CHECK(read_file(folder / "notes.txt") == "mine");
}

// The layout of the hub's cache: refs name a commit, its snapshot is links to blobs.
void put_in_cache(const fs::path& home, const std::string& commit) {
  const fs::path repository = home / "hub/models--org--tiny";
  fs::create_directories(repository / "blobs");
  fs::create_directories(repository / "refs");
  fs::create_directories(repository / "snapshots" / commit);
  write_file_atomic(repository / "refs/main", commit);
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename().string();
    fs::copy(entry.path(), repository / "blobs" / name);
    fs::create_symlink("../../blobs/" + name, repository / "snapshots" / commit / name);
  }
}

TEST_CASE("a name in the Hugging Face cache is the model that lies there") {
  const test::TemporaryFolder home;
  put_in_cache(home.path(), std::string(40, 'a'));
  const auto in_home = [&] {
    ::unsetenv("HF_HUB_CACHE");
    ::setenv("HF_HOME", home.path().c_str(), 1);
  };
  const auto ids = test::write_ids(home / "ids.jsonl", {{54, 135, 218, 156, 210}});
  const auto score = [&](const std::string& model) {
    return test::run_program({"score", "--model", model, "--ids", ids}, in_home);
  };
  const auto cached = score("org/tiny");
  REQUIRE_MESSAGE(cached.status == 0, cached.err);
  CHECK(cached.out == score(kFolder).out);
  const auto missing = score("org/other");
  CHECK(missing.status == 2);
  CHECK(missing.err.find("hf download org/other") != std::string::npos);
}

TEST_CASE("inspect tells family, sizes, tensors with their types, and memory") {
  const auto facts = test::rows_of({"inspect", kFolder, "--json", "-"}).at(0);
  const auto config = nlohmann::json::parse(read_file(fs::path(kFolder) / "config.json"));
  CHECK(facts.at("family") == "llama");
  CHECK(facts.at("hidden_size") == config.at("hidden_size"));
  CHECK(facts.at("intermediate_size") == config.at("intermediate_size"));
  CHECK(facts.at("num_layers") == config.at("num_hidden_layers"));
  CHECK(facts.at("num_heads") == config.at("num_attention_heads"));
  CHECK(facts.at("num_kv_heads") == config.at("num_key_value_heads"));
  CHECK(facts.at("vocab_size") == 257);
  CHECK(facts.at("max_positions") == 512);
  CHECK(facts.at("tied_embeddings") == true);
  CHECK(facts.at("dtype") == "float32");
  // Every weight is in the file once, as 4 bytes; the header is a few kilobytes.
  const auto bytes =
      static_cast<std::int64_t>(fs::file_size(fs::path(kFolder) / "model.safetensors"));
  const auto parameters = facts.at("parameters").get<std::int64_t>();
  CHECK(parameters * 4 < bytes);
  CHECK(parameters * 4 > bytes - 10'000);
  // Weights, gradients and two moments at the least.
  CHECK(facts.at("train_peak_bytes").get<std::int64_t>() > 4 * 4 * parameters);
  CHECK(facts.at("rollout_peak_bytes").get<std::int64_t>() > 4 * parameters);

  const auto text = test::run_program({"inspect", kGguf});
  REQUIRE(text.status == 0);
  for (const char* part : {"llama-tied-q8_0.gguf: llama, ",
                           "vocabulary 257 (tied)",
                           "model.layers.1.mlp.down_proj.weight",
                           "Q8_0",
                           "memory to train it"}) {
    CHECK_MESSAGE(text.out.find(part) != std::string::npos, part);
  }
}

}  // namespace
}  // namespace tandem
