#include "config/suggest.h"

#include <doctest/doctest.h>

namespace tandem::config {
namespace {

TEST_CASE("worked distances: one edit of each kind, a swap counts once") {
  CHECK(edit_distance("clip", "clip") == 0);
  CHECK(edit_distance("clip", "clipp") == 1);
  CHECK(edit_distance("clip", "lip") == 1);
  CHECK(edit_distance("clip", "chip") == 1);
  CHECK(edit_distance("hihg", "high") == 1);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("the nearest word is named, and none where all are far") {
  const std::vector<std::string> known = {"clip_low", "clip_high", "epochs"};
  CHECK(nearest("clip_hihg", known) == "clip_high");
  CHECK_FALSE(nearest("temperature", known));
  CHECK(suggestion("epoch", known) == "; did you mean epochs?");
  CHECK(suggestion("zzz", known).empty());
}

}  // namespace
}  // namespace tandem::config
