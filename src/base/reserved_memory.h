// Address space whose pages come with the first write and can be given back.
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem {

/// One anonymous reservation, on large pages where the system has them. The addresses stay the same
/// for its whole life; what was never written takes no memory.
class ReservedMemory {
 public:
  /// Throws MachineError "WHAT: BYTES bytes cannot be reserved: reason"; `what` names the setting
  /// to change.
  ReservedMemory(std::int64_t bytes, std::string_view what);
  ReservedMemory(const ReservedMemory&) = delete;
  ReservedMemory& operator=(const ReservedMemory&) = delete;
  ~ReservedMemory();

  [[nodiscard]] char* data() { return data_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

  /// Gives all pages back; they come again, zeroed, when they are written.
  void release();

 private:
  std::int64_t bytes_;
  char* data_ = nullptr;
};

}  // namespace tandem
