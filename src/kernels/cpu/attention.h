// Attention on one thread: what it takes, and its entries in the table.
#pragma once

namespace tandem::kernels {

struct AttentionTable {};

}  // namespace tandem::kernels
