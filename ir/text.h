// Text as operators on strings understand it, on the host: the same functions as in the emitted C.
#pragma once
#include <string>
#include <string_view>

namespace tc {

/// The letters of UTF-8 text large or small, by Unicode's simple mapping: a code point becomes one code point. Bytes that
/// are no UTF-8 stay.
std::string in_case(std::string_view text, bool upper);

}  // namespace tc
