// Products of bfloat16 in pairs, by vdpbf16ps: Arithmetic::kDotBf16.
#define TANDEM_ISA avx512_bf16
#include "kernels/cpu/linear_rows.inc"
#include "kernels/cpu/product.inc"
#include "kernels/cpu/table.h"

namespace tandem::kernels::TANDEM_ISA {

extern const Bf16Gemm kBf16Gemm;
const Bf16Gemm kBf16Gemm = {
    linear<Bf16, Bf16, Bf16>,
    linear<Bf16, Bf16, float>,
    product<Bf16, Bf16, Bf16>,
};

}  // namespace tandem::kernels::TANDEM_ISA
