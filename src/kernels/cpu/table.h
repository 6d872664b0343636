// The kernels of one instruction set as function pointers.
#pragma once

#include "kernels/cpu/attention.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/vocab.h"

namespace tandem::kernels {

struct Table {
  GemmTable gemm;
  NormTable norm;
  ElementwiseTable elementwise;
  AttentionTable attention;
  VocabTable vocab;
};

/// The kernels of the instruction set in use.
const Table& table();

/// Uses `table`, which must outlive its use, until `set_isa`: for tests with kernels of their own.
void set_table(const Table& table);

namespace portable {
extern const Table kTable;
}
namespace avx2 {
extern const Table kTable;
}
namespace avx512 {
extern const Table kTable;
}
namespace avx512_bf16 {
extern const Bf16Gemm kBf16Gemm;
}

}  // namespace tandem::kernels
