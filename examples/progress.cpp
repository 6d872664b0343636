// A reward with partial credit: how far a completion goes along the right answer.
//
//   g++ -shared -fPIC -I include examples/progress.cpp -o libprogress.so
//
// A policy that is never wholly right learns nothing from a reward of 0 and 1: all its samples are
// alike. With partial credit, the better of two wrong answers counts.
#include <tandem/reward.hpp>

// The share of the answer's characters that come before the first wrong one; the end of the answer
// counts as one character, so that 1 means: all of it, and nothing behind it.
TANDEM_REWARD(progress) {
  const auto completion = sample.completion();
  const auto answer = sample.ground_truth();
  const auto end = answer.begin() + std::min(answer.size(), completion.size());
  const auto right = std::mismatch(answer.begin(), end, completion.begin()).first - answer.begin();
  const bool ended = completion == answer && sample.finish_reason() == "stop";
  return (right + (ended ? 1.0 : 0.0)) / (answer.size() + 1.0);
}
