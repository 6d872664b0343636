#include "kernels/isa.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "kernels/cpu/table.h"

namespace tandem::kernels {
namespace {

const Table& widened_table(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) {
    return avx512::kTable;
  }
  if (isa == Isa::kAvx2) {
    return avx2::kTable;
  }
#endif
  static_cast<void>(isa);
  return portable::kTable;
}

const Table& table_of(Isa isa, Arithmetic arithmetic) {
#if defined(__x86_64__)
  if (arithmetic == Arithmetic::kDotBf16) {
    static const Table table = [] {
      Table with_dots = avx512::kTable;
      with_dots.gemm.bf16 = avx512_bf16::kBf16Gemm;
      return with_dots;
    }();
    return table;
  }
#endif
  return widened_table(isa);
}

Arithmetic fastest(Isa isa) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (isa == Isa::kAvx512 && supports_dot_bf16() && __builtin_cpu_is("amd")) {
    return Arithmetic::kDotBf16;
  }
#endif
  static_cast<void>(isa);
  return Arithmetic::kWidened;
}

struct Choice {
  std::atomic<Isa> isa;
  std::atomic<Arithmetic> arithmetic;
  std::atomic<const Table*> table;

  explicit Choice(Isa first)
      : isa(first), arithmetic(fastest(first)), table(&table_of(first, arithmetic)) {}
};

Choice& choice() {
  static Choice instance(supported_isas().front());
  return instance;
}

std::string names_of(const std::vector<Isa>& isas) {
  std::string names = "auto";
  for (const Isa isa : isas) {
    names += fmt::format(", {}", name_of(isa));
  }
  return names;
}

Isa isa_named(std::string_view name) {
  const std::vector<Isa> supported = supported_isas();
  if (name == "auto") {
    return supported.front();
  }
  const auto all = {Isa::kAvx512, Isa::kAvx2, Isa::kPortable};
  const auto* named =
      std::find_if(all.begin(), all.end(), [&](Isa isa) { return name_of(isa) == name; });
  if (named == all.end()) {
    fail<UserError>("isa: unknown instruction set {}; choose one of auto, avx512, avx2, portable",
                    name);
  }
  if (std::find(supported.begin(), supported.end(), *named) == supported.end()) {
    fail<MachineError>("isa: this machine has no {}; choose one of {}", name, names_of(supported));
  }
  return *named;
}

Arithmetic arithmetic_named(std::string_view name, Isa isa) {
  if (name == "auto") {
    return fastest(isa);
  }
  if (name == name_of(Arithmetic::kWidened)) {
    return Arithmetic::kWidened;
  }
  if (name != name_of(Arithmetic::kDotBf16)) {
    fail<UserError>("arithmetic: unknown arithmetic {}; choose one of auto, widened, dot_bf16",
                    name);
  }
  if (!supports_dot_bf16()) {
    fail<MachineError>("arithmetic: this machine has no dot_bf16; choose auto or widened");
  }
  if (isa != Isa::kAvx512) {
    fail<UserError>(
        "arithmetic: dot_bf16 needs isa avx512, not {}; use arithmetic widened or isa avx512",
        name_of(isa));
  }
  return Arithmetic::kDotBf16;
}

}  // namespace

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kPortable:
      break;
  }
  return "portable";
}

std::string_view name_of(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kDotBf16 ? "dot_bf16" : "widened";
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx2 && avx512) {
    isas.push_back(Isa::kAvx512);
  }
  if (avx2) {
    isas.push_back(Isa::kAvx2);
  }
#endif
  isas.push_back(Isa::kPortable);
  return isas;
}

bool supports_dot_bf16() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return supported_isas().front() == Isa::kAvx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

Isa isa() {
  return choice().isa;
}

Arithmetic arithmetic() {
  return choice().arithmetic;
}

void set_arithmetic(std::string_view isa, std::string_view arithmetic) {
  const Isa new_isa = isa_named(isa);
  const Arithmetic new_arithmetic = arithmetic_named(arithmetic, new_isa);
  choice().isa = new_isa;
  choice().arithmetic = new_arithmetic;
  choice().table = &table_of(new_isa, new_arithmetic);
}

void set_isa(std::string_view name) {
  set_arithmetic(name, "auto");
}

const Table& table() {
  return *choice().table.load(std::memory_order_relaxed);
}

void set_table(const Table& table) {
  choice().table = &table;
}

}  // namespace tandem::kernels
