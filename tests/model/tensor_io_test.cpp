#include "model/tensor_io.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "model/safetensors.h"
#include "support/doctest_torch.h"
#include "support/temporary_folder.h"

namespace tandem::model {
namespace {

TEST_CASE("tensors of every dtype and stride come back bit for bit") {
  const test::TemporaryFolder folder;
  const auto path = folder / "t.safetensors";
  const at::Tensor base = at::arange(24, at::kFloat).reshape({4, 6}) / 7;
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto dtype : {at::kDouble,
                           at::kFloat,
                           at::kHalf,
                           at::kBFloat16,
                           at::kLong,
                           at::kInt,
                           at::kShort,
                           at::kChar,
                           at::kByte,
                           at::kBool}) {
    tensors.emplace_back(std::string("t_") + at::toString(dtype), base.to(dtype));
  }
  tensors.emplace_back("strided", base.t());
  tensors.emplace_back("scalar", at::scalar_tensor(3.5));
  tensors.emplace_back("empty", at::empty({0, 3}));
  write_safetensors(path, tensors);
  const SafetensorsFile file(path);
  CHECK(file.metadata().at("format") == "pt");
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    CHECK(test::same_bits(file.tensor(name), tensor));
  }
  CHECK_THROWS_AS(file.tensor("other"), UserError);
}

TEST_CASE("data at an odd place is read") {
  const test::TemporaryFolder folder;
  std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})";
  std::string content(8, '\0');
  content[0] = static_cast<char>(header.size());
  content += header + "x" + std::string("\x00\x00\x80\x3f", 4);
  write_file_atomic(folder / "odd.safetensors", content);
  const SafetensorsFile file(folder / "odd.safetensors");
  CHECK(file.tensor("b").item<float>() == 1.0f);
}

TEST_CASE("dtypes that cannot be had are refused by name") {
  CHECK((dtype_of_config("bfloat16", "x") == at::kBFloat16));
  try {
    dtype_of_config("int8", "--dtype");
    FAIL("accepted int8");
  } catch (const UserError& error) {
    const std::string message = error.what();
    CHECK(message.find("--dtype: dtype 'int8' is not supported") == 0);
    CHECK(message.find("float32, bfloat16, float16") != std::string::npos);
  }
  CHECK_THROWS_AS(dtype_of_safetensors("U64", "x"), UserError);
}

}  // namespace
}  // namespace tandem::model
