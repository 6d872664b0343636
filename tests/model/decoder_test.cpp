// The decoder's own choices: into how many slices each product cuts its sum.
#include "model/decoder.h"

#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>

#include "kernels/cpu/table.h"
#include "kernels/isa.h"
#include "support/doctest_torch.h"
#include "support/tiny_model.h"

namespace tandem::model {
namespace {

using Cut = std::pair<std::int64_t, std::int64_t>;  // depth of a sum, its slices

const kernels::Table& plain_table() {
  static const kernels::Table table = kernels::table();
  return table;
}

std::vector<Cut>& noted_cuts() {
  static std::vector<Cut> cuts;
  return cuts;
}

// Notes each product once, however many tiles it has; on one thread.
void noting_linear(const kernels::LinearArgs<float, float>& args) {
  const Cut cut = {args.depth, args.num_slices};
  if (noted_cuts().empty() || noted_cuts().back() != cut) {
    noted_cuts().push_back(cut);
  }
  plain_table().gemm.linear_f32(args);
}

RowBatch five_rows() {
  RowBatch batch;
  batch.ids = at::arange(7, 12, at::kInt);
  batch.paths.positions = at::arange(5, at::kInt);
  batch.paths.path_start = at::zeros({5}, at::kLong);
  batch.paths.key_slots = at::arange(5, at::kInt);
  return batch;
}

TEST_CASE("o_proj has a slice for each key head, down_proj those of its width, the others one") {
  const auto tiny = test::random_model();  // 72 wide, 2 key heads, 176 in the middle
  kernels::Table noting = plain_table();
  noting.gemm.linear_f32 = noting_linear;
  kernels::set_table(noting);
  {
    const at::NoGradGuard no_grad;
    static_cast<void>(tiny.decoder->forward(five_rows(), {}));
  }
  kernels::set_isa("auto");
  const std::vector<Cut> layer = {{72, 1}, {72, 2}, {72, 1}, {176, 8}};
  std::vector<Cut> want = layer;
  want.insert(want.end(), layer.begin(), layer.end());
  CHECK(noted_cuts() == want);
}

TEST_CASE("down_proj's slices are the largest divisor of its width up to 8") {
  CHECK(down_slices(160) == 8);
  CHECK(down_slices(172) == 4);
  CHECK(down_slices(7) == 7);
  CHECK(down_slices(11) == 1);
}

}  // namespace
}  // namespace tandem::model
