// Sizes without an upper bound (--dim batch=1..).
//
// To the passes such a size is a number like any other, one that no memory holds: kernels are right up to it. A number of
// bytes, elements or offsets that is computed from it is `times` such sizes and `rest`, and is printed so: "96 * m->room + 64".
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "support/text.h"

namespace tc {

/// 2^21 * 3^2 * 5 * 7 * 11 * 13: tiles of any usual size divide it, so that none is cut short. Half of it is more bytes (44 GiB)
/// than any tensor has whose size is known, and 90 MiB for each of the size are still a number of 64 bits.
inline constexpr int64_t kOpenSize = int64_t(738'017'280) << 7;
/// The largest size that an instance is made for; a size_t of 32 bits holds it.
inline constexpr int64_t kMostRoom = 738'017'280;

inline bool is_open(int64_t n) { return n >= kOpenSize / 2; }
/// Sizes of a tensor that nobody can store: no number holds how many elements it has (num_elements() throws TC0501). The scores
/// of attention are one; kernels compute them block by block.
inline bool has_several_open(std::span<const int64_t> dims) {
  return std::count_if(dims.begin(), dims.end(), is_open) > 1;
}

struct OpenNumber {
  int64_t times = 0, rest = 0;  // times * size + rest; the rest is less than half a size
  int64_t at(int64_t size) const { return times * size + rest; }
};
inline OpenNumber open_number(int64_t n) {
  if (n < 0) return {0, n};
  const OpenNumber o{n / kOpenSize, n % kOpenSize};
  return is_open(o.rest) ? OpenNumber{o.times + 1, o.rest - kOpenSize} : o;
}

/// What bounds such a size: "--dim batch=1..64". `name`: as it is printed.
inline std::string bounded_option(const std::string& name, int64_t least) {
  return "--dim " + name + "=" + to_text(least) + ".." + to_text(least < 64 ? 64 : least + 63);
}

/// The largest size to try where one from `least` to `most` is chosen.
inline int64_t most_tried(int64_t least, int64_t most) { return is_open(most) ? least + 37 : most; }

/// The number; of an open one "96 * SIZE + 64".
inline std::string open_text(int64_t n, const std::string& size) {
  const OpenNumber o = open_number(n);
  if (o.times == 0) return to_text(n);
  const std::string all = o.times == 1 ? size : to_text(o.times) + " * " + size;
  return o.rest == 0 ? all : all + (o.rest < 0 ? " - " + to_text(-o.rest) : " + " + to_text(o.rest));
}

/// Of an axis: "128", "9 * n". What is added to open sizes is small; another number that large is one that a model states.
inline std::string axis_text(int64_t n) {
  const int64_t rest = open_number(n).rest;
  return rest > -kMostRoom && rest < kMostRoom ? open_text(n, "n") : to_text(n);
}
/// The text, each of its whole numbers as axis_text() has it: what messages say of sizes.
inline std::string with_open_sizes(std::string_view text) {
  std::string all;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
    int64_t n = 0;
    const bool is_number = end > at && std::from_chars(text.data() + at, text.data() + end, n).ec == std::errc();
    all += is_number && is_open(n) ? axis_text(n) : text.substr(at, std::max(end, at + 1) - at);
    at = std::max(end, at + 1);
  }
  return all;
}
/// The size of which axis_text() makes such a formula; nothing if there is none.
inline std::optional<int64_t> open_axis(std::string_view text) {
  OpenNumber o{1, 0};
  std::from_chars(text.data(), text.data() + text.size(), o.times);
  if (o.times < 1 || o.times > INT64_MAX / kOpenSize - 1) return std::nullopt;
  const size_t sign = text.find_last_of("+-");
  if (sign != std::string_view::npos && sign + 2 <= text.size())
    std::from_chars(text.data() + sign + 2, text.data() + text.size(), o.rest);
  const int64_t n = o.times * kOpenSize + (sign != std::string_view::npos && text[sign] == '-' ? -o.rest : o.rest);
  return axis_text(n) == text ? std::optional(n) : std::nullopt;
}

}  // namespace tc
