#include "model/gguf.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "model/safetensors.h"
#include "support/damage.h"
#include "support/gguf_builder.h"
#include "support/temporary_folder.h"

namespace tandem::model {
namespace {

using nlohmann::json;
using test::GgufBuilder;

const std::string kGolden = "tests/golden/gguf/";

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string refusal(const std::string& file) {
  try {
    parse_gguf_header(bytes_of(file), "m.gguf");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

json number_list(const auto& values) {
  json result = json::array();
  for (const auto value : values) {
    result.push_back(value);
  }
  return result;
}

// A metadata value as JSON has it.
json to_json(const GgufValue& value) {
  return std::visit(
      [](const auto& v) -> json {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, std::vector<bool>>) {
          return number_list(v);
        } else {
          return v;
        }
      },
      value);
}

TEST_CASE("metadata of every type and all tensors of the golden files are listed") {
  for (const std::string name : {"types", "types_align64"}) {
    CAPTURE(name);
    const json expected = json::parse(read_file(kGolden + name + ".json"));
    const GgufFile file(kGolden + name + ".gguf");
    CHECK(file.header().version == expected["gguf_version"]);
    CHECK(file.header().alignment == expected["alignment"]);
    for (const auto& [key, value] : expected["metadata"].items()) {
      CAPTURE(key);
      REQUIRE(file.header().metadata.count(key) == 1);
      CHECK(to_json(file.header().metadata.at(key)) == value);
    }
    REQUIRE(file.tensors().size() == expected["tensors"].size());
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
      const GgufTensor& tensor = file.tensors()[i];
      const json& wanted = expected["tensors"][i];
      CAPTURE(tensor.name);
      CHECK(tensor.name == wanted["name"]);
      CHECK(std::string(tensor.type->name) == wanted["type"]);
      CHECK(tensor.type->id == wanted["type_id"]);
      CHECK(json(tensor.shape) == wanted["shape"]);
      if (wanted.contains("block")) {
        CHECK(json({tensor.type->values_per_block, tensor.type->bytes_per_block}) ==
              wanted["block"]);
      }
      CHECK(tensor.begin == wanted["data_offset"]);
      CHECK(tensor.num_bytes == wanted["n_bytes"]);
    }
  }
}

TEST_CASE("every storage type gives the expected values bit for bit") {
  std::size_t num_values = 0;
  for (const std::string name : {"types", "types_align64"}) {
    const GgufFile file(kGolden + name + ".gguf");
    const SafetensorsFile expected(kGolden + name + ".expected.safetensors");
    for (const GgufTensor& tensor : file.tensors()) {
      CAPTURE(tensor.name);
      const TensorInfo* info = expected.find(tensor.name);
      REQUIRE(info != nullptr);
      CHECK(info->shape == tensor.shape);
      const auto wanted = expected.bytes(*info);
      std::vector<float> values(wanted.size() / sizeof(float));
      file.dequantize_into(tensor, values);
      CHECK(std::memcmp(values.data(), wanted.data(), wanted.size()) == 0);
      num_values += values.size();
    }
  }
  CHECK(num_values > 4000);
}

TEST_CASE("typed access names file and key when the kind is another") {
  const GgufFile file(kGolden + "types.gguf");
  CHECK(file.integer("golden.i8") == -100);
  CHECK(file.integer("golden.u32") == 4000000000);
  CHECK(file.number("golden.f64") == 0.1);
  CHECK(file.number("golden.u8") == 200.0);
  CHECK(file.boolean("golden.b") == true);
  CHECK(file.text("general.name") == "golden tensors");
  CHECK(file.texts("golden.arr_str")->size() == 3);
  CHECK(*file.integers("golden.arr_i32") == std::vector<std::int64_t>{1, -2, 3});
  CHECK(*file.numbers("golden.arr_f32") == std::vector<double>{0.5, -1.25});
  CHECK_FALSE(file.integer("golden.absent").has_value());
  CHECK(file.texts("golden.absent") == nullptr);
  CHECK_THROWS_AS((void)file.integer("golden.u64"), UserError);  // beyond 63 bits
  CHECK_THROWS_AS((void)file.integer("golden.s"), UserError);
  CHECK_THROWS_AS((void)file.number("golden.s"), UserError);
  CHECK_THROWS_AS((void)file.boolean("golden.u8"), UserError);
  CHECK_THROWS_AS((void)file.text("golden.b"), UserError);
  CHECK_THROWS_AS((void)file.texts("golden.arr_i32"), UserError);
}

TEST_CASE("damaged headers are refused with file and place") {
  const auto with = [](const std::vector<std::uint64_t>& dimensions,
                       std::uint32_t type,
                       std::uint64_t offset,
                       std::size_t num_data_bytes) {
    return refusal(GgufBuilder()
                       .tensor("w", dimensions, type, offset)
                       .data(std::string(num_data_bytes, 'x'))
                       .build());
  };
  REQUIRE(with({2, 3}, 0, 0, 24) == "accepted");
  REQUIRE(with({2, 3}, 0, 32, 56) == "accepted");
  GgufBuilder old;
  old.version = 1;
  const std::vector<std::string> messages = {
      refusal(""),
      refusal("GG"),
      refusal("GGUF"),
      refusal("GGML" + std::string(100, '\0')),
      refusal(old.build()),
      refusal("GGUF" + GgufBuilder::u32(3) + std::string(16, '\xff')),
      refusal("GGUF" + GgufBuilder::u32(3) + GgufBuilder::u64(0) + GgufBuilder::u64(1)),
      with({2, 3}, 0, 0, 23),
      with({2, 3}, 0, 64, 56),
      with({2, 3}, 0, 4, 64),
      with({2, 3}, 0, ~0ull - 31, 64),
      with({31}, 2, 0, 64),
      with({1ull << 62, 4}, 0, 0, 64),
      with({~0ull}, 0, 0, 64),
      with({2, 3}, 13, 0, 64),
      with({1, 1, 1, 1, 1}, 0, 0, 64),
      refusal(GgufBuilder()
                  .tensor("w", {8}, 0, 0)
                  .tensor("w", {8}, 0, 32)
                  .data(std::string(64, 'x'))
                  .build()),
      refusal(GgufBuilder()
                  .tensor("v", {16}, 0, 0)
                  .tensor("w", {8}, 0, 32)
                  .data(std::string(64, 'x'))
                  .build()),
      refusal(GgufBuilder().integer("a", 1).integer("a", 2).build()),
      refusal(GgufBuilder().integer("general.alignment", 0).build()),
      refusal(GgufBuilder().integer("general.alignment", 48).build()),
      refusal(GgufBuilder().entry("a", 13, "").build()),
      refusal(GgufBuilder().entry("a", 8, GgufBuilder::u64(~0ull)).build()),
      refusal(
          GgufBuilder().entry("a", 9, GgufBuilder::u32(4) + GgufBuilder::u64(1ull << 60)).build()),
      refusal(GgufBuilder().entry("a", 9, GgufBuilder::u32(9) + GgufBuilder::u64(1)).build()),
  };
  for (std::size_t i = 0; i < messages.size(); ++i) {
    CAPTURE(i);
    CAPTURE(messages[i]);
    CHECK(messages[i].starts_with("m.gguf: "));
    CHECK(messages[i].find('\n') == std::string::npos);
  }
  CHECK(with({2, 3}, 13, 0, 64).find("storage type 13; supported: F32, F16") != std::string::npos);
}

TEST_CASE("thousands of damaged copies are read or refused, and never crash") {
  const std::string good = read_file(kGolden + "types.gguf");
  const test::TemporaryFolder folder;
  std::size_t refused = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const std::string bad = test::damaged(good, seed, 1200);
    refused += refusal(bad) == "accepted" ? 0 : 1;
    if (seed % 20 == 0) {  // whole reads, values and config included
      write_file_atomic(folder / "bad.gguf", bad);
      try {
        const GgufFile file(folder / "bad.gguf");
        for (const GgufTensor& tensor : file.tensors()) {
          const auto num_blocks = tensor.num_bytes / tensor.type->bytes_per_block;
          std::vector<float> values(num_blocks * tensor.type->values_per_block);
          file.dequantize_into(tensor, values);
        }
        config_from_gguf(file);
      } catch (const UserError&) {
      }
    }
  }
  CHECK(refused > 1000);
}

}  // namespace
}  // namespace tandem::model
