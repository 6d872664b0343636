// Checksums of the logical weights: what trainer and sampler must agree on after a phase switch.
#pragma once

#include <cstdint>

#include "model/weight_store.h"

namespace tandem::weightsync {

/// A 64-bit hash of every tensor's name, shape and bytes. Equal weights, equal checksum, whatever
/// the layout; the order of the tensors is that of the store.
std::uint64_t checksum(const model::WeightStore& weights);

}  // namespace tandem::weightsync
