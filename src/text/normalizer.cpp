#include "text/normalizer.h"

#include <utility>

#include <utf8proc.h>

namespace tandem::text {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

std::string strip(const std::string& text, bool left, bool right) {
  std::size_t begin = 0;
  std::size_t end = 0;  // after the last character that stays
  bool seen = false;
  for (std::size_t at = 0; at < text.size();) {
    const Decoded c = decode_utf8(text, at);
    if (class_of(c.code) != kSpace) {
      begin = seen ? begin : at;
      end = at + c.length;
      seen = true;
    }
    at += c.length;
  }
  begin = !left ? 0 : seen ? begin : text.size();
  end = right ? end : text.size();
  return end > begin ? text.substr(begin, end - begin) : std::string();
}

std::string strip_accents(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Decoded c = decode_utf8(text, at);
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c.code));
    if (category < UTF8PROC_CATEGORY_MN || category > UTF8PROC_CATEGORY_ME) {
      out.append(text, at, c.length);
    }
    at += c.length;
  }
  return out;
}

std::string replace_string(const std::string& text,
                           const std::string& from,
                           const std::string& to) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t found = text.find(from); found != std::string::npos && !from.empty();
       found = text.find(from, at)) {
    out.append(text, at, found - at);
    out += to;
    at = found + from.size();
  }
  out.append(text, at);
  return out;
}

std::string replace_matches(const std::string& text, const Regex& regex, const std::string& to) {
  std::string out;
  std::size_t at = 0;
  for (const ByteSpan& span : regex.find_all(text)) {
    out.append(text, at, span.begin - at);
    out += to;
    at = span.end;
  }
  out.append(text, at);
  return out;
}

std::variant<std::string, Regex> read_pattern(const JsonPlace& pattern) {
  if (pattern.has("String")) {
    return pattern.at("String").string();
  }
  const JsonPlace regex = pattern.at("Regex");
  return Regex(regex.string(), regex.where());
}

}  // namespace

Replacement::Replacement(const JsonPlace& config)
    : pattern_(read_pattern(config.at("pattern"))), content_(config.at("content").string()) {}

std::string Replacement::apply(const std::string& text) const {
  const auto* from = std::get_if<std::string>(&pattern_);
  return from != nullptr ? replace_string(text, *from, content_)
                         : replace_matches(text, std::get<Regex>(pattern_), content_);
}

Normalizer::Normalizer(const JsonPlace& config) {
  add(config);
}

void Normalizer::add(const JsonPlace& config) {
  const std::string& type = config.at("type").string();
  if (type == "Sequence") {
    const JsonPlace list = config.at("normalizers");
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      add(list.at(i));
    }
  } else if (type == "NFC") {
    steps_.emplace_back(NormalForm::kNfc);
  } else if (type == "NFD") {
    steps_.emplace_back(NormalForm::kNfd);
  } else if (type == "NFKC") {
    steps_.emplace_back(NormalForm::kNfkc);
  } else if (type == "NFKD") {
    steps_.emplace_back(NormalForm::kNfkd);
  } else if (type == "Prepend") {
    steps_.emplace_back(Prepend{config.at("prepend").string()});
  } else if (type == "Strip") {
    steps_.emplace_back(Strip{config.flag("strip_left", true), config.flag("strip_right", true)});
  } else if (type == "Lowercase") {
    steps_.emplace_back(Lowercase{});
  } else if (type == "StripAccents") {
    steps_.emplace_back(StripAccents{});
  } else if (type == "Replace") {
    steps_.emplace_back(Replacement(config));
  } else {
    config.refuse("normalizers of type \"{}\" are not supported", type);
  }
}

std::string Normalizer::apply_step(const Step& step, std::string text) {
  return std::visit(
      Overloaded{
          [&](NormalForm form) { return is_ascii(text) ? text : normalize(text, form); },
          [&](const Prepend& p) { return text.empty() ? text : p.prefix + text; },
          [&](const Strip& s) { return strip(text, s.left, s.right); },
          [&](Lowercase) { return to_lower(text); },
          [&](StripAccents) { return strip_accents(text); },
          [&](const Replacement& r) { return r.apply(text); },
      },
      step);
}

std::string Normalizer::apply(std::string text) const {
  for (const Step& step : steps_) {
    text = apply_step(step, std::move(text));
  }
  return text;
}

}  // namespace tandem::text
