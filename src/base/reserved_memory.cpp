#include "base/reserved_memory.h"

#include <cerrno>
#include <cstring>

#include <sys/mman.h>

#include "base/error.h"

namespace tandem {

ReservedMemory::ReservedMemory(std::int64_t bytes, std::string_view what) : bytes_(bytes) {
  TANDEM_CHECK(bytes > 0, "{}: {} bytes were asked for", what, bytes);
  const auto size = static_cast<std::size_t>(bytes);
  void* memory = ::mmap(
      nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    fail<MachineError>("{}: {} bytes cannot be reserved: {}", what, bytes, std::strerror(errno));
  }
  ::madvise(memory, size, MADV_HUGEPAGE);
  data_ = static_cast<char*>(memory);
}

ReservedMemory::~ReservedMemory() {
  ::munmap(data_, static_cast<std::size_t>(bytes_));
}

void ReservedMemory::release() {
  ::madvise(data_, static_cast<std::size_t>(bytes_), MADV_DONTNEED);
}

}  // namespace tandem
