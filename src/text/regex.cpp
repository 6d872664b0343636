#define PCRE2_CODE_UNIT_WIDTH 8

#include "text/regex.h"

#include <array>

#include <pcre2.h>

#include "base/error.h"

namespace tandem::text {
namespace {

constexpr std::string_view kWhiteSpaceSet =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::size_t kJitStackStart = std::size_t{32} << 10U;
constexpr std::size_t kJitStackMax = std::size_t{8} << 20U;

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* p) const {
    Free(p);
  }
};

using MatchData = std::unique_ptr<pcre2_match_data, Freer<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Freer<pcre2_match_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Freer<pcre2_jit_stack_free>>;

}  // namespace

struct Regex::Code {
  std::unique_ptr<pcre2_code, Freer<pcre2_code_free>> code;
};

Regex::Regex(const std::string& pattern, const std::string& where)
    : code_(std::make_unique<Code>()) {
  if (pattern.find("&&[") != std::string::npos) {
    fail<UserError>("{}: intersections of character classes (&&) are not supported", where);
  }
  const std::string spelled = spell_out_white_space(pattern);
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelled.data()),
                                  spelled.size(),
                                  PCRE2_UTF | PCRE2_UCP,
                                  &error,
                                  &offset,
                                  nullptr));
  if (code_->code == nullptr) {
    fail<UserError>("{}: the regular expression does not compile: {}", where, message_of(error));
  }
  // Without JIT (an unusual machine) matching is slower and otherwise the same.
  pcre2_jit_compile(code_->code.get(), PCRE2_JIT_COMPLETE);
}

Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

std::vector<ByteSpan> Regex::find_all(std::string_view text) const {
  const pcre2_code* code = code_->code.get();
  const MatchData data(pcre2_match_data_create_from_pattern(code, nullptr));
  const MatchContext context(pcre2_match_context_create(nullptr));
  const JitStack stack(pcre2_jit_stack_create(kJitStackStart, kJitStackMax, nullptr));
  pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  std::vector<ByteSpan> found;
  std::size_t at = 0;
  while (at < text.size()) {
    const int count = pcre2_match(code,
                                  reinterpret_cast<PCRE2_SPTR>(text.data()),
                                  text.size(),
                                  at,
                                  PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY,
                                  data.get(),
                                  context.get());
    if (count == PCRE2_ERROR_NOMATCH) {
      break;
    }
    TANDEM_CHECK(count >= 0, "matching a regular expression failed: {}", message_of(count));
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data.get());
    found.push_back({span[0], span[1]});
    at = span[1];
  }
  return found;
}

std::string spell_out_white_space(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (next == 's') {
        out += in_class ? std::string(kWhiteSpaceSet) : fmt::format("[{}]", kWhiteSpaceSet);
      } else if (next == 'S' && !in_class) {
        out += fmt::format("[^{}]", kWhiteSpaceSet);
      } else {
        out += c;
        out += next;
      }
      continue;
    }
    in_class = in_class ? c != ']' : c == '[';
    out += c;
  }
  return out;
}

}  // namespace tandem::text
