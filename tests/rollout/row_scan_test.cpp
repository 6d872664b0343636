#include "rollout/row_scan.h"

#include <limits>
#include <vector>

#include <doctest/doctest.h>

namespace tandem::rollout {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("the maximum is found and one bad logit is noticed at any place of rows of any size") {
  for (const std::size_t size : {1, 15, 16, 17, 40}) {
    for (std::size_t place = 0; place < size; ++place) {
      std::vector<float> logits(size, -5.0F);
      logits[place] = -1.0F;
      CHECK(scan_row(logits).max == -1.0F);
      CHECK(scan_row(logits).usable);
      for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity}) {
        logits[place] = bad;
        CHECK_FALSE(scan_row(logits).usable);
      }
    }
  }
}

TEST_CASE("-inf is usable, and the maximum of a row that has nothing else") {
  CHECK(scan_row(std::vector<float>{-kInfinity, 2.0F}).usable);
  CHECK(scan_row(std::vector<float>(20, -kInfinity)).max == -kInfinity);
}

}  // namespace
}  // namespace tandem::rollout
