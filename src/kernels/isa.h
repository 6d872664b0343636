// Which instruction set the CPU kernels use: chosen once a process, never by shape.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem::kernels {

enum class Isa { kPortable, kAvx2, kAvx512 };

std::string_view name_of(Isa isa);

/// The instruction sets that this machine can run, best first.
std::vector<Isa> supported_isas();

/// The one in use; the best supported one until `set_isa`.
Isa isa();

/// Chooses by name: "auto", "avx512", "avx2" or "portable". UserError for an unknown name,
/// MachineError for one that this machine lacks. All give the same bits; they differ in speed.
void set_isa(std::string_view name);

}  // namespace tandem::kernels
