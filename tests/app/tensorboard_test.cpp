#include "app/tensorboard.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "app/tensorboard_records.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kGolden = "golden/tensorboard";
constexpr const char* kGoldenEvents = "events.out.tfevents.1700000000.host.1.0.golden";

json golden_json(const char* name) {
  return json::parse(read_file(test::shared_data() / kGolden / name));
}

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) {
    hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return hex;
}

struct Scalar {
  std::string tag;
  std::int64_t step = 0;
  double wall_time = 0;
  float value = 0;
};

// A reader of the test's own, which shares only the framing with the product.
std::uint64_t varint_at(std::string_view bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.at(at++));
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      return value;
    }
  }
}

// The fields of a message: number to payload (the raw bytes of a fixed one, 8 of a varint).
std::map<int, std::string> fields_of(std::string_view message) {
  std::map<int, std::string> fields;
  for (std::size_t at = 0; at < message.size();) {
    const std::uint64_t key = varint_at(message, at);
    std::size_t size = 0;
    if ((key & 7) == 0) {
      const std::uint64_t value = varint_at(message, at);
      fields[static_cast<int>(key >> 3)].assign(reinterpret_cast<const char*>(&value), 8);
      continue;
    }
    size = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : varint_at(message, at);
    REQUIRE(at + size <= message.size());
    fields[static_cast<int>(key >> 3)] = message.substr(at, size);
    at += size;
  }
  return fields;
}

template <class Number>
Number number_of(const std::string& bytes) {
  Number value{};
  REQUIRE(bytes.size() == sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::vector<Scalar> scalars_of(const std::string& file) {
  const RecordScan scan = scan_records(file);
  REQUIRE(scan.end == RecordScan::End::kWhole);
  std::vector<Scalar> scalars;
  for (const auto record : scan.records) {
    auto event = fields_of(record);
    if (event.count(5) == 0) {
      continue;
    }
    auto value = fields_of(fields_of(event[5])[1]);
    if (value.count(2) == 1) {
      const auto step = event.count(2) == 1 ? number_of<std::int64_t>(event[2]) : 0;
      CHECK(step_of_event(record) == step);
      scalars.push_back({value[1], step, number_of<double>(event[1]), number_of<float>(value[2])});
    }
  }
  return scalars;
}

float expected_value(const json& value) {
  return value.is_string() ? std::strtof(value.get<std::string>().c_str(), nullptr)
                           : value.get<float>();
}

TEST_CASE("a reader of the golden file finds every scalar that was logged") {
  TANDEM_NEEDS_SHARED(kGolden);
  std::map<std::string, std::vector<Scalar>> found;
  for (const auto& s : scalars_of(read_file(test::shared_data() / kGolden / kGoldenEvents))) {
    found[s.tag].push_back(s);
  }
  const json expected = golden_json("expected.json")["scalars"];
  CHECK(found.size() == expected.size());
  for (const auto& [tag, points] : expected.items()) {
    CAPTURE(tag);
    REQUIRE(found[tag].size() == points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      const float value = expected_value(points[i][2]);
      CHECK(found[tag][i].step == points[i][0].get<std::int64_t>());
      CHECK(found[tag][i].wall_time == points[i][1].get<double>());
      CHECK(
          (found[tag][i].value == value || (std::isnan(found[tag][i].value) && std::isnan(value))));
    }
  }
}

TEST_CASE("the golden file's scalar records come out byte for byte") {
  TANDEM_NEEDS_SHARED(kGolden);
  const std::string file = read_file(test::shared_data() / kGolden / kGoldenEvents);
  const std::vector<Scalar> scalars = scalars_of(file);
  const json records = golden_json("records.json")["records"];
  std::size_t next = 0;
  for (const auto& record : records) {
    const auto offset = record["offset"].get<std::size_t>();
    const auto size = record["length"].get<std::size_t>();
    CAPTURE(offset);
    const std::string_view framed = std::string_view(file).substr(offset, size + 16);
    CHECK(frame_record(framed.substr(12, size)) == framed);
    CHECK(masked_crc32c(framed.substr(0, 8)) == record["length_crc"].get<std::uint32_t>());
    CHECK(masked_crc32c(framed.substr(12, size)) == record["data_crc"].get<std::uint32_t>());
    const json& event = record["event"];
    if (!event.contains("summary") || !event["summary"]["value"][0].contains("simple_value")) {
      continue;
    }
    REQUIRE(next < scalars.size());
    const Scalar& s = scalars[next++];
    const std::string data = encode_scalar_event(s.step, s.wall_time, s.tag, s.value);
    CHECK(to_hex(data) == record["data_hex"].get<std::string>());
    CHECK(frame_record(data) == framed);
  }
  CHECK(next == 39);
}

TEST_CASE("a written file is read back, in the order of the calls and then of the names") {
  const test::TemporaryFolder folder;
  const fs::path file = folder / "events";
  {
    EventWriter writer(file);
    writer.add_scalars(1, 10.5, {{"loss", 2.5}, {"a/b", -1}});
    const auto size = fs::file_size(file);
    CHECK(scalars_of(read_file(file)).size() == 2);  // on the disk at once
    writer.add_scalars(2, 11.5, {{"loss", 0}});
    CHECK(fs::file_size(file) > size);
  }
  EventWriter(file).add_scalars(std::int64_t{1} << 40, 12, {{"loss", 1e300}});
  const std::string bytes = read_file(file);
  auto version = fields_of(scan_records(bytes).records.at(0));
  CHECK(version[3] == "brain.Event:2");
  CHECK(scan_records(bytes).records.size() == 5);  // the version once
  const auto scalars = scalars_of(bytes);
  REQUIRE(scalars.size() == 4);
  CHECK(scalars[0].tag == "a/b");
  CHECK(scalars[0].value == -1.0f);
  CHECK(scalars[1].wall_time == 10.5);
  CHECK(scalars[2].step == 2);
  CHECK(std::isinf(scalars[3].value));
}

std::string three_steps(const fs::path& file) {
  EventWriter writer(file);
  for (int step = 1; step <= 3; ++step) {
    writer.add_scalars(step, step, {{"loss", step}, {"reward", -step}});
  }
  return read_file(file);
}

TEST_CASE("cutting back drops later steps, and writing goes on as if they had never been") {
  const test::TemporaryFolder folder;
  const std::string whole = three_steps(folder / "events");
  EventWriter::cut_back(folder / "events", 3);
  CHECK(read_file(folder / "events") == whole);
  EventWriter::cut_back(folder / "events", 2);
  CHECK(scalars_of(read_file(folder / "events")).size() == 4);
  EventWriter(folder / "events").add_scalars(3, 3, {{"loss", 3}, {"reward", -3}});
  CHECK(read_file(folder / "events") == whole);
  EventWriter::cut_back(folder / "events", -1);
  CHECK(scan_records(read_file(folder / "events")).records.size() == 1);  // the version stays
}

TEST_CASE("a record that was cut short anywhere is dropped, a flipped bit ends the file there") {
  const test::TemporaryFolder folder;
  const fs::path file = folder / "events";
  const std::string whole = three_steps(file);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_file_atomic(file, whole.substr(0, size));
    EventWriter::cut_back(file, 3);
    const std::string kept = read_file(file);
    REQUIRE(whole.starts_with(kept));
    REQUIRE(scan_records(kept).end == RecordScan::End::kWhole);
    REQUIRE(kept.size() == scan_records(whole.substr(0, size)).whole_bytes);
  }
  std::string damaged = whole;
  damaged[damaged.size() - 5] ^= 1;
  write_file_atomic(file, damaged);
  EventWriter::cut_back(file, 3);
  CHECK(scalars_of(read_file(file)).size() == 5);
}

TEST_CASE("a file of another kind is refused untouched, an absent one stays absent") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder / "events", "this is a text and no event file");
  CHECK_THROWS_AS(EventWriter::cut_back(folder / "events", 1), UserError);
  CHECK(read_file(folder / "events") == "this is a text and no event file");
  EventWriter::cut_back(folder / "absent", 1);
  CHECK_FALSE(fs::exists(folder / "absent"));
  CHECK_THROWS_AS(EventWriter(folder / "no" / "folder"), MachineError);
}

TEST_CASE("a run's newest event file is found, a new one is named by time, host and process") {
  const test::TemporaryFolder folder;
  const std::string fresh = event_file_of(folder.path()).filename().string();
  CHECK(fresh.starts_with("events.out.tfevents.1"));
  CHECK(fresh.ends_with(fmt::format(".{}.0", ::getpid())));
  for (const char* name : {"events.out.tfevents.9.b.1.0", "events.out.tfevents.10.a.1.0", "z"}) {
    write_file_atomic(folder / name, "");
  }
  CHECK(event_file_of(folder.path()) == folder / "events.out.tfevents.10.a.1.0");
}

}  // namespace
}  // namespace tandem::app
