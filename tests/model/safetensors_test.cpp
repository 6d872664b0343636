#include "model/safetensors.h"

#include <functional>
#include <string>

#include <doctest/doctest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "model/safetensors_writer.h"
#include "support/damage.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace tandem::model {
namespace {

const std::string kGolden = "tests/golden/models/";

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A file of the given header text and number of data bytes.
std::string file_of(const std::string& header, std::size_t num_data_bytes) {
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) {
    length[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  }
  return length + header + std::string(num_data_bytes, 'x');
}

std::string refusal(const std::string& file) {
  try {
    parse_safetensors_header(bytes_of(file), "model.safetensors");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("a golden file's tensors and metadata are listed") {
  const SafetensorsFile file(kGolden + "llama-tied/model.safetensors");
  CHECK(file.tensors().size() == 20);
  CHECK(file.metadata().at("format") == "pt");
  const TensorInfo* info = file.find("model.embed_tokens.weight");
  REQUIRE(info != nullptr);
  CHECK(info->dtype == "F32");
  CHECK(info->shape == std::vector<std::int64_t>{257, 64});
  CHECK(file.bytes(*info).size() == 257 * 64 * 4);
  CHECK(file.find("lm_head.weight") == nullptr);
}

TEST_CASE("a file without metadata is read") {
  TANDEM_NEEDS_SHARED("ScaleLLM/assets/model_loader/data/test.safetensors");
  const SafetensorsFile file(test::shared_data() /
                             "ScaleLLM/assets/model_loader/data/test.safetensors");
  CHECK(file.metadata().empty());
  REQUIRE_FALSE(file.tensors().empty());
  CHECK(file.tensors()[0].shape == std::vector<std::int64_t>{10, 10});
}

TEST_CASE("empty tensors, scalars and a file without tensors are read") {
  const auto header = parse_safetensors_header(
      bytes_of(file_of(R"({"a":{"dtype":"F32","shape":[0,3],"data_offsets":[0,0]},)"
                       R"("b":{"dtype":"I16","shape":[],"data_offsets":[0,2]}})",
                       2)),
      "f");
  CHECK(header.tensors.size() == 2);
  CHECK(parse_safetensors_header(bytes_of(file_of("{}", 0)), "f").tensors.empty());
}

TEST_CASE("damaged headers are refused with file and place") {
  const auto one = [](const std::string& entry, std::size_t num_data_bytes) {
    return refusal(file_of("{\"w\":" + entry + "}", num_data_bytes));
  };
  const std::string good = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  REQUIRE(one(good, 8) == "accepted");
  const std::vector<std::string> messages = {
      refusal(""),
      refusal("short"),
      refusal(std::string(8, '\xff') + "{}"),
      refusal(file_of("not json", 0)),
      refusal(file_of("[]", 0)),
      one(good, 7),
      one(good, 9),
      one("3", 8),
      one(R"({"shape":[2],"data_offsets":[0,8]})", 8),
      one(R"({"dtype":"F99","shape":[2],"data_offsets":[0,8]})", 8),
      one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})", 8),
      one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})", 8),
      one(R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]})", 0),
      one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})", 8),
      one(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})", 8),
      one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,16]})", 16),
      one(R"({"dtype":"F32","shape":[2],"data_offsets":[18446744073709551612,4]})", 8),
      refusal(file_of("{\"w\":" + good + ",\"w\":" + good + "}", 8)),
      refusal(file_of("{\"v\":" + good + ",\"w\":" + good + "}", 16)),
      refusal(file_of("{\"__metadata__\":{\"a\":1}}", 0)),
  };
  for (const std::string& message : messages) {
    CAPTURE(message);
    CHECK(message.starts_with("model.safetensors"));
    CHECK(message.find('\n') == std::string::npos);
  }
}

TEST_CASE("a missing file, a folder and an empty file are refused by name") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder / "empty.safetensors", "");
  for (const auto& path :
       {folder / "missing.safetensors", folder.path(), folder / "empty.safetensors"}) {
    try {
      const SafetensorsFile file(path);
      FAIL("accepted ", path.string());
    } catch (const UserError& error) {
      CHECK(std::string(error.what()).starts_with(path.string()));
    }
  }
}

TEST_CASE("thousands of damaged copies are read or refused, and never crash") {
  const std::string good = read_file("tests/golden/gguf/types.expected.safetensors");
  REQUIRE(refusal(good) == "accepted");
  std::size_t refused = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const std::string bad = test::damaged(good, seed, 1200);
    refused += refusal(bad) == "accepted" ? 0 : 1;
  }
  CHECK(refused > 2000);
}

TEST_CASE("what is written piece by piece is read back") {
  const test::TemporaryFolder folder;
  const auto path = folder / "w.safetensors";
  SafetensorsWriter writer(
      path, {{.name = "b", .dtype = "I16", .shape = {3}}, {.name = "a", .dtype = "F32"}}, {});
  writer.append(bytes_of("abcdef"));
  CHECK_THROWS_AS(writer.append(bytes_of("too long")), Error);
  SafetensorsWriter again(
      path, {{.name = "b", .dtype = "I16", .shape = {3}}, {.name = "a", .dtype = "F32"}}, {});
  again.append(bytes_of("abcdef"));
  CHECK_THROWS_AS(again.close(), Error);
  again.append(bytes_of("wxyz"));
  again.close();
  const SafetensorsFile file(path);
  REQUIRE(file.tensors().size() == 2);
  CHECK(file.tensors()[0].name == "b");
  CHECK(file.bytes(file.tensors()[1])[3] == std::byte{'z'});
  CHECK(file.metadata().empty());
}

TEST_CASE("a full disk is a MachineError that names the file") {
  const std::vector<float> values(1 << 16);
  const auto write = [&] {
    SafetensorsWriter writer("/dev/full", {{.name = "a", .dtype = "F32", .shape = {1 << 16}}}, {});
    writer.append(std::as_bytes(std::span(values)));
    writer.close();
  };
  CHECK_THROWS_AS(write(), MachineError);
}

}  // namespace
}  // namespace tandem::model
