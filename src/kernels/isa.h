// Which instruction set and which arithmetic the CPU kernels use: chosen once a process, never by
// shape.
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

/// How products of bfloat16 are summed; float32 has one way.
///
/// kWidened: as floats, by fused multiply-adds; the same bits on every machine. kDotBf16: in pairs,
/// by the AVX512_BF16 instruction vdpbf16ps, which takes denormals for zero and rounds in its own
/// way; no other instruction set gives its bits.
enum class Arithmetic { kWidened, kDotBf16 };

std::string_view name_of(Arithmetic arithmetic);

/// The one in use; that of "auto" until `set_arithmetic`.
Arithmetic arithmetic();

/// True where the machine has vdpbf16ps.
bool supports_dot_bf16();

/// Chooses both by name. Instruction sets: "auto", "avx512", "avx2" or "portable"; they differ in
/// speed alone. Arithmetics: "auto", "widened" or "dot_bf16"; "auto" is kDotBf16 where that is
/// faster: with AVX-512 on AMD's processors that have it (others multiply floats at least as fast).
/// It depends on the model of the processor, never on a measurement. UserError for an unknown name
/// and for dot_bf16 without AVX-512, MachineError for what this machine lacks.
void set_arithmetic(std::string_view isa, std::string_view arithmetic);

/// set_arithmetic(name, "auto").
void set_isa(std::string_view name);

}  // namespace tandem::kernels
