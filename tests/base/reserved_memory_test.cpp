#include "base/reserved_memory.h"

#include <cstring>

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

namespace tandem {
namespace {

bool is_resident(char* page) {
  unsigned char resident = 0;
  REQUIRE(::mincore(page, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), &resident) == 0);
  return (resident & 1U) != 0;
}

TEST_CASE("pages come with the first write, go with the release, and come again as zeros") {
  ReservedMemory memory(1 << 20, "a test");
  char* const data = memory.data();
  CHECK_FALSE(is_resident(data));
  std::memset(data, 7, 100);
  CHECK(is_resident(data));
  memory.release();
  CHECK_FALSE(is_resident(data));
  CHECK(memory.data() == data);
  CHECK(data[50] == 0);
}

TEST_CASE("what cannot be reserved is the machine's fault and names the setting") {
  CHECK_THROWS_WITH_AS(ReservedMemory(std::int64_t{1} << 60, "some.setting"),
                       doctest::Contains("some.setting: 1152921504606846976 bytes cannot be"),
                       MachineError);
  CHECK_THROWS_AS(ReservedMemory(0, "some.setting"), Error);
}

}  // namespace
}  // namespace tandem
