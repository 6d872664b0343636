#include "kernels/vocab.h"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "kernels/cpu/table.h"
#include "kernels/linear.h"

namespace tandem::kernels {

LogSumExp reduce_logits(const float* logits,
                        std::int64_t n,
                        float inverse_temperature,
                        std::vector<LogSumExp>* chunks) {
  TANDEM_CHECK(n >= 1, "reduce_logits: {} logits", n);
  const VocabTable& kernels = table().vocab;
  thread_local std::vector<VocabPartial> parts;  // a call for each token: nothing is allocated
  parts.clear();
  for (std::int64_t first = 0; first < n; first += kVocabChunk) {
    const std::int64_t size = std::min(kVocabChunk, n - first);
    parts.push_back(kernels.reduce_chunk(logits + first, size, inverse_temperature));
  }
  if (chunks != nullptr) {
    chunks->clear();
    for (const VocabPartial& part : parts) {
      chunks->push_back({part.max, part.sum});
    }
  }
  const VocabPartial all = kernels.merge_chunks(parts.data(), std::ssize(parts));
  return {all.max, all.sum};
}

void exp_shifted(
    const float* logits, std::int64_t n, float inverse_temperature, float max, float* out) {
  table().vocab.exp_shifted(logits, n, inverse_temperature, max, out);
}

at::Tensor logits(const at::Tensor& x, const Weight& weight) {
  const at::Tensor out = at::empty({x.size(0), weight.value.size(0)},
                                   x.options().dtype(at::kFloat).requires_grad(false));
  linear_into(x.detach(), weight.value.detach(), {}, 1, out);
  return out;
}

}  // namespace tandem::kernels
