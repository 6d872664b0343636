// doctest for tests that use tensors. Include this, never <doctest/doctest.h>, in such a test.
//
// LibTorch's logging header defines CHECK and its kin too, and theirs abort the process: doctest
// has to come last.
#pragma once

#include <ATen/ATen.h>
#include <c10/util/Logging.h>

#undef CHECK
#undef CHECK_EQ
#undef CHECK_NE
#undef CHECK_LT
#undef CHECK_LE
#undef CHECK_GT
#undef CHECK_GE

#include <doctest/doctest.h>

namespace tandem::test {

/// True when the shapes agree and the values do within the tolerances; prints both when not.
inline bool close(const at::Tensor& got,
                  const at::Tensor& want,
                  double rtol = 1e-5,
                  double atol = 1e-7) {
  const bool ok = got.sizes() == want.sizes() && at::allclose(got, want, rtol, atol);
  if (!ok) {
    MESSAGE("got:\n" << got << "\nwant:\n" << want);
  }
  return ok;
}

/// True when shapes, types and every bit agree.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const auto x = a.contiguous();
  const auto y = b.contiguous();
  return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() &&
         std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

}  // namespace tandem::test
