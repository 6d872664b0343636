#include "app/jsonl.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace tandem::app {
namespace {

TEST_CASE("numbers read back as the same bits") {
  std::uint64_t state = 7;
  for (int i = 0; i < 20'000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    float f = 0;
    const auto bits = static_cast<std::uint32_t>(state >> 32);
    std::memcpy(&f, &bits, sizeof f);
    double d = 0;
    std::memcpy(&d, &state, sizeof d);
    if (std::isfinite(f)) {
      const auto back = static_cast<float>(nlohmann::json::parse(json_number(f)).get<double>());
      CHECK(std::memcmp(&back, &f, sizeof f) == 0);
    }
    if (std::isfinite(d)) {
      const auto back = nlohmann::json::parse(json_number(d)).get<double>();
      REQUIRE(std::memcmp(&back, &d, sizeof d) == 0);
    }
  }
  CHECK(json_number(0.1f) == "0.1");
}

TEST_CASE("what is not finite is one of three texts") {
  CHECK(json_number(std::nan("")) == "\"NaN\"");
  CHECK(json_number(std::numeric_limits<float>::infinity()) == "\"Infinity\"");
  CHECK(json_number(-std::numeric_limits<double>::infinity()) == "\"-Infinity\"");
}

TEST_CASE("an object keeps the order of its keys, and broken UTF-8 is replaced") {
  const std::vector<std::int32_t> ids = {1, -2};
  const std::vector<float> floats = {0.5f, std::nanf("")};
  const std::string text = JsonObject()
                               .add("z", "a\"\n")
                               .add("a", std::int64_t{3})
                               .add("t", true)
                               .add("ids", ids)
                               .add("x", floats)
                               .add("bad",
                                    std::string_view("\xff"
                                                     "b"))
                               .add_json("n", "null")
                               .str();
  CHECK(text == R"({"z": "a\"\n", "a": 3, "t": true, "ids": [1, -2], "x": [0.5, "NaN"], "bad": ")"
                "\xEF\xBF\xBD"
                R"(b", "n": null})");
  CHECK(nlohmann::json::parse(text)["a"] == 3);
}

TEST_CASE("an unwritable file is a machine error") {
  CHECK_THROWS_AS(LineWriter("/proc/no/such"), MachineError);
}

TEST_CASE("a full disk is a machine error") {
  if (!std::filesystem::exists("/dev/full")) {
    MESSAGE("skipped: no /dev/full");
    return;
  }
  LineWriter writer("/dev/full");
  const auto fill = [&] {
    writer.write(std::string(1 << 20, 'x'));
    writer.finish();
  };
  CHECK_THROWS_AS(fill(), MachineError);
}

}  // namespace
}  // namespace tandem::app
