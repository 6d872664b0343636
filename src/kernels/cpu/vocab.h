// Reductions over the vocabulary on one thread: what they take, and their entries in the table.
#pragma once

namespace tandem::kernels {

struct VocabTable {};

}  // namespace tandem::kernels
