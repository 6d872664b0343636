// The "post_processor" part of a tokenizer.json: ids in front of and behind a text.
#pragma once

#include <vector>

#include "text/bpe.h"
#include "text/json_place.h"

namespace tandem::text {

/// Immutable. The ids that a single text gets before and after its own.
class PostProcessor {
 public:
  PostProcessor() = default;
  /// Throws UserError for a kind that is not supported, naming it.
  explicit PostProcessor(const JsonPlace& config) { add(config); }

  [[nodiscard]] const std::vector<TokenId>& before() const { return before_; }
  [[nodiscard]] const std::vector<TokenId>& after() const { return after_; }

 private:
  void add(const JsonPlace& config);
  void add_template(const JsonPlace& config);

  std::vector<TokenId> before_;
  std::vector<TokenId> after_;
};

}  // namespace tandem::text
