// What a pass hands to operators of com.microsoft whose sizes are known at run time, behind the operands that models give.
#pragma once
#include <cstddef>
#include <string_view>

namespace tc {

/// How many elements there are along the axis of the sequence, an i64 scalar; GroupQueryAttention gets the number of keys of
/// the present cache behind it.
constexpr size_t kCountOperand = 16;
/// How many keys the present cache has room for.
constexpr std::string_view kCapacityAttr = "tc_capacity";
/// Is the present cache a tensor of its own, with zeros behind the last key? A state is the past with more keys.
constexpr std::string_view kOwnCacheAttr = "tc_own_cache";

}  // namespace tc
