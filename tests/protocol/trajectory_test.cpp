#include "protocol/trajectory.h"

#include <string>

#include <doctest/doctest.h>

namespace tandem {
namespace {

TEST_CASE("an allowed set is all ids, the listed ones, or all but the banned ones") {
  const AllowedSet all;
  CHECK(all.is_all());
  CHECK(all.contains(7));
  const AllowedSet listed{.ids = {2, 7}, .banned = {}};
  CHECK_FALSE(listed.is_all());
  CHECK(listed.contains(7));
  CHECK_FALSE(listed.contains(3));
  const AllowedSet rest{.ids = {}, .banned = {3}};
  CHECK_FALSE(rest.is_all());
  CHECK(rest.contains(7));
  CHECK_FALSE(rest.contains(3));
}

TEST_CASE("finish reasons have the names of the JSONL records") {
  CHECK(std::string(name_of(FinishReason::kStopString)) == "stop_string");
  CHECK(std::string(name_of(FinishReason::kError)) == "error");
}

}  // namespace
}  // namespace tandem
