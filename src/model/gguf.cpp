#include "model/gguf.h"

#include <limits>

#include "base/error.h"
#include "model/in_quotes.h"

namespace tandem::model {
namespace {

[[noreturn]] void refuse(const GgufFile& file, const std::string& key, std::string_view expected) {
  fail<UserError>("{}: metadata {} is no {}; fetch the file again",
                  file.path().string(),
                  in_quotes(key),
                  expected);
}

// The value when it has type T; null when the key is absent; an error otherwise.
template <class T>
const T* find_value(const GgufFile& file, const std::string& key, std::string_view expected) {
  const auto& metadata = file.header().metadata;
  const auto found = metadata.find(key);
  if (found == metadata.end()) {
    return nullptr;
  }
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) {
    refuse(file, key, expected);
  }
  return value;
}

template <class T>
std::optional<T> copy_of(const T* value) {
  return value == nullptr ? std::nullopt : std::optional<T>(*value);
}

}  // namespace

GgufFile::GgufFile(const std::filesystem::path& path)
    : file_(path), header_(parse_gguf_header(file_.bytes(), path.string())) {
  for (std::size_t i = 0; i < header_.tensors.size(); ++i) {
    index_of_name_[header_.tensors[i].name] = i;
  }
}

const GgufTensor* GgufFile::find(const std::string& name) const {
  const auto found = index_of_name_.find(name);
  return found == index_of_name_.end() ? nullptr : &header_.tensors[found->second];
}

std::optional<std::int64_t> GgufFile::integer(const std::string& key) const {
  const auto found = header_.metadata.find(key);
  if (found == header_.metadata.end()) {
    return std::nullopt;
  }
  if (const auto* value = std::get_if<std::int64_t>(&found->second)) {
    return *value;
  }
  const auto* value = std::get_if<std::uint64_t>(&found->second);
  if (value == nullptr || *value > std::numeric_limits<std::int64_t>::max()) {
    refuse(*this, key, "integer of 64 bits");
  }
  return static_cast<std::int64_t>(*value);
}

std::optional<double> GgufFile::number(const std::string& key) const {
  const auto found = header_.metadata.find(key);
  if (found == header_.metadata.end()) {
    return std::nullopt;
  }
  if (const auto* value = std::get_if<float>(&found->second)) {
    return *value;
  }
  if (const auto* value = std::get_if<double>(&found->second)) {
    return *value;
  }
  return static_cast<double>(*integer(key));
}

std::optional<bool> GgufFile::boolean(const std::string& key) const {
  return copy_of(find_value<bool>(*this, key, "bool"));
}

std::optional<std::string> GgufFile::text(const std::string& key) const {
  return copy_of(find_value<std::string>(*this, key, "string"));
}

const std::vector<std::string>* GgufFile::texts(const std::string& key) const {
  return find_value<std::vector<std::string>>(*this, key, "array of strings");
}

const std::vector<std::int64_t>* GgufFile::integers(const std::string& key) const {
  return find_value<std::vector<std::int64_t>>(*this, key, "array of integers");
}

const std::vector<double>* GgufFile::numbers(const std::string& key) const {
  return find_value<std::vector<double>>(*this, key, "array of floats");
}

void GgufFile::dequantize_into(const GgufTensor& tensor, std::span<float> out) const {
  const GgufType& type = *tensor.type;
  const auto num_blocks = tensor.num_bytes / static_cast<std::uint64_t>(type.bytes_per_block);
  const auto num_values = num_blocks * static_cast<std::uint64_t>(type.values_per_block);
  TANDEM_CHECK(out.size() == num_values,
               "tensor {} has {} values, room for {}",
               tensor.name,
               num_values,
               out.size());
  const std::byte* block = file_.bytes().data() + tensor.begin;
  float* target = out.data();
  for (std::uint64_t i = 0; i < num_blocks; ++i) {
    type.dequantize_block(block, target);
    block += type.bytes_per_block;
    target += type.values_per_block;
  }
}

}  // namespace tandem::model
