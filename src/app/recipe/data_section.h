// The recipe's sections `data` and `validation`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/recipe/field_options.h"

namespace tandem::app {

struct SourceSection {
  std::string path;
  double weight = 1.0;

  template <class V>
  void visit(V& v) {
    v("path", path, doc("A JSONL file."), required());
    v("weight", weight, doc("Share of the draws that come from it; only ratios count."), above(0));
  }
};

struct ValidationSourceSection {
  std::string path;

  template <class V>
  void visit(V& v) {
    v("path", path, doc("A JSONL file."), required());
  }
};

struct ExampleSection {
  std::string user;
  std::string assistant;

  template <class V>
  void visit(V& v) {
    v("user", user, doc("What the user asks; data.prompt_template is not applied."), required());
    v("assistant", assistant, doc("The model answer shown."), required());
  }
};

struct ColumnsSection {
  std::string prompt;
  std::string ground_truth;
  std::string source;
  std::string id;
  std::string completion;

  template <class V>
  void visit(V& v) {
    v("prompt",
      prompt,
      doc("Column of the prompt: a text or messages."),
      unset_means("first of prompt, question, problem, input"));
    v("ground_truth",
      ground_truth,
      doc("Column of the right answer; a dot goes into a table."),
      unset_means("first of ground_truth, reward_model.ground_truth, answer, solution, target, "
                  "expected_answer"));
    v("source",
      source,
      doc("Column that names the task; validation groups by it."),
      unset_means("data_source, else the file's name"));
    v("id", id, doc("Column of the row's name."), unset_means("id, else FILE:LINE"));
    v("completion",
      completion,
      doc("Column of the text to learn, for `sft`."),
      unset_means("first of completion, response, answer, output, solution, target"));
  }
};

struct DataSection {
  std::vector<SourceSection> train;
  std::vector<ValidationSourceSection> validation;
  ColumnsSection columns;
  std::string system;
  std::vector<ExampleSection> examples;
  std::string prompt_template;
  std::string chat_template = "chat";
  std::optional<std::int64_t> max_prompt_tokens;
  std::string overlong = "drop";
  std::string last_batch = "wrap";
  bool shuffle = true;

  template <class V>
  void visit(V& v) {
    v("train", train, doc("Files to draw prompts from."));
    v("validation", validation, doc("Files to validate on, all rows in their order."));
    v("columns", columns, doc("Which columns of a row mean what."));
    v("system", system, doc("System message put before every prompt."), unset_means("none"));
    v("examples", examples, doc("Worked examples, put before every prompt as turns."));
    v("prompt_template",
      prompt_template,
      doc("Text of the prompt with {column} for the row's columns; {{ and }} are braces."),
      unset_means("the prompt column as it is"));
    v("template",
      chat_template,
      doc("`chat`: a text prompt is one user message where the model has a chat template. `none`: "
          "it is raw text."),
      one_of({"chat", "none"}));
    v("max_prompt_tokens",
      max_prompt_tokens,
      doc("Longest prompt, rendered, in tokens."),
      at_least(1),
      unset_means("what the model's positions leave beside rollout.max_new_tokens"));
    v("overlong",
      overlong,
      doc("What happens to longer ones: left out and counted, an error, or cut at that side."),
      one_of({"drop", "error", "left", "right", "middle"}));
    v("last_batch",
      last_batch,
      doc("An epoch that does not fill its last step: goes on with the next epoch, leaves the rest "
          "out, or makes a smaller step."),
      one_of({"wrap", "drop", "short"}));
    v("shuffle", shuffle, doc("A new order every epoch; else that of the file."));
  }
};

struct ValidationSection {
  std::int64_t samples = 1;
  double temperature = 0.0;
  std::optional<std::int64_t> max_prompts;

  template <class V>
  void visit(V& v) {
    v("samples", samples, doc("Samples a prompt."), at_least(1));
    v("temperature", temperature, doc("0 takes the likeliest token."), at_least(0));
    v("max_prompts",
      max_prompts,
      doc("Validates on the first ones only."),
      at_least(1),
      unset_means("all"));
  }
};

}  // namespace tandem::app
