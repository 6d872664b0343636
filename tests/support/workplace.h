// A small model, data and recipe that are right, for tests that then spoil one of them.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temporary_folder.h"

namespace tandem::test {

inline void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

/// A recipe that would run, but for what a case changes in it.
inline std::string recipe_text(const std::filesystem::path& folder) {
  return "run: {name: r, dir: " + (folder / "runs").string() +
         "}\n"
         "model: {init: {config: " +
         (folder / "model").string() +
         "}}\n"
         "data: {train: [{path: " +
         (folder / "data.jsonl").string() +
         "}]}\n"
         "rollout: {prompts_per_step: 2, samples_per_prompt: 2, max_new_tokens: 3}\n"
         "rewards: [{kind: exact_match, name: accuracy}]\n"
         "trainer: {steps: 1, checkpoint: {every: 0}}\n";
}

/// A model folder with a tokenizer of single characters, data for it, and the recipe.
struct Workplace {
  Workplace() {
    std::filesystem::create_directories(folder / "model");
    write(folder / "model/config.json",
          R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32,
              "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
              "num_key_value_heads": 1, "vocab_size": 12, "max_position_embeddings": 64,
              "eos_token_id": 11, "tie_word_embeddings": true})");
    std::string vocabulary;
    for (int i = 0; i < 10; ++i) {
      vocabulary += "\"" + std::to_string(i) + "\": " + std::to_string(i) + ", ";
    }
    write(folder / "model/tokenizer.json",
          R"({"version": "1.0", "added_tokens": [{"id": 11, "content": "<eos>", "special": true,
              "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}],
              "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
              "model": {"type": "BPE", "vocab": {)" +
              vocabulary + R"("+": 10, "<eos>": 11}, "merges": []}})");
    write(folder / "data.jsonl",
          "{\"prompt\": \"1+2\", \"answer\": \"3\"}\n{\"prompt\": \"2+2\", \"answer\": \"4\"}\n");
    write(folder / "r.yaml", recipe_text(folder.path()));
  }
  [[nodiscard]] std::string at(const std::string& name) const { return (folder / name).string(); }

  TemporaryFolder folder;
};

}  // namespace tandem::test
