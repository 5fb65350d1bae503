#include "cli/review/weight_diff.h"

#include <cmath>
#include <cstring>

#include "cli/review/changes.h"
#include "support/text.h"

namespace tc {
namespace {

std::string counted(int64_t differ, int64_t all) {
  return to_text(differ) + " of " + to_text(all) + (all == 1 ? " element" : " elements") +
         (differ == 1 ? " differs" : " differ");
}

std::string text_difference(const TensorData& a, const TensorData& b) {
  int64_t differ = 0;
  for (size_t i = 0; i < a.strings.size(); i++) differ += a.strings[i] != b.strings[i];
  return differ == 0 ? "" : counted(differ, int64_t(a.strings.size()));
}

}  // namespace

std::string weight_difference(const TensorData& a, const TensorData& b) {
  check(a.dtype == b.dtype && a.dims == b.dims, "weights of one type and shape");
  if (a.dtype == DType::String) return text_difference(a, b);
  if (a.num_bytes == b.num_bytes && (a.num_bytes == 0 || std::memcmp(a.bytes.get(), b.bytes.get(), a.num_bytes) == 0))
    return "";
  const int64_t n = a.size();
  const auto size = size_t(info(a.dtype).bytes);
  if (is_complex(a.dtype)) return "elements differ";
  int64_t differ = 0;
  double most = 0, squares = 0, old_squares = 0;
  for (int64_t i = 0; i < n; i++) {
    const double x = a.as_double(i);
    if (std::isfinite(x)) old_squares += x * x;
    if (std::memcmp(a.bytes.get() + size_t(i) * size, b.bytes.get() + size_t(i) * size, size) == 0) continue;
    differ++;
    const double d = std::fabs(b.as_double(i) - x);
    if (!std::isfinite(d)) continue;  // counted; no distance
    most = std::max(most, d);
    squares += d * d;
  }
  return counted(differ, n) + ", by " + short_number(most) + " at most; root mean square of the differences " +
         short_number(std::sqrt(squares / double(n))) + ", of the elements " +
         short_number(std::sqrt(old_squares / double(n)));
}

}  // namespace tc
