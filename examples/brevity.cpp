// A reward in C++: the shorter the answer, the better.
//
//   g++ -shared -fPIC -I include examples/brevity.cpp -o libbrevity.so
//
// and in the recipe
//
//   rewards:
//     - {name: brevity, library: libbrevity.so, weight: 0.1, timeout_ms: 1000, on_failure: none}
//
// It runs in a process of its own: if it crashed, hung or threw, that sample alone would be lost.
#include <tandem/reward.hpp>

// 1 for a completion of at most 20 tokens, less for longer ones.
TANDEM_REWARD(brevity) {
  return std::min(1.0, 20.0 / sample.completion_ids().size());
}
