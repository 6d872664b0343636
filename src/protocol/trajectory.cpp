#include "protocol/trajectory.h"

#include <algorithm>

namespace tandem {

bool AllowedSet::contains(TokenId id) const {
  if (!ids.empty()) {
    return std::binary_search(ids.begin(), ids.end(), id);
  }
  return !std::binary_search(banned.begin(), banned.end(), id);
}

const char* name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kStopString:
      return "stop_string";
    case FinishReason::kAbort:
      return "abort";
    case FinishReason::kError:
      return "error";
  }
  return "error";
}

}  // namespace tandem
