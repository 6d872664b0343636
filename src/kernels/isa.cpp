#include "kernels/isa.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "kernels/cpu/table.h"

namespace tandem::kernels {
namespace {

const Table& table_of(Isa isa) {
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

struct Choice {
  std::atomic<Isa> isa;
  std::atomic<const Table*> table;

  explicit Choice(Isa first) : isa(first), table(&table_of(first)) {}
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

Isa isa() {
  return choice().isa;
}

void set_isa(std::string_view name) {
  const std::vector<Isa> supported = supported_isas();
  Isa chosen = supported.front();
  if (name != "auto") {
    const auto all = {Isa::kAvx512, Isa::kAvx2, Isa::kPortable};
    const auto* named =
        std::find_if(all.begin(), all.end(), [&](Isa isa) { return name_of(isa) == name; });
    if (named == all.end()) {
      fail<UserError>("isa: unknown instruction set {}; choose one of auto, avx512, avx2, portable",
                      name);
    }
    chosen = *named;
  }
  if (std::find(supported.begin(), supported.end(), chosen) == supported.end()) {
    fail<MachineError>("isa: this machine has no {}; choose one of {}", name, names_of(supported));
  }
  choice().isa = chosen;
  choice().table = &table_of(chosen);
}

const Table& table() {
  return *choice().table.load(std::memory_order_relaxed);
}

void set_table(const Table& table) {
  choice().table = &table;
}

}  // namespace tandem::kernels
