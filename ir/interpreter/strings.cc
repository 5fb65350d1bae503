#include "ir/interpreter/strings.h"

#include "ir/interpreter/elements.h"

namespace tc::interp {

static_assert(sizeof(StringElement) == 16, "the room of a string in info()");

int64_t StringPool::handle(std::string_view text) {
  if (text.empty()) return 0;
  auto it = texts_.find(text);
  if (it == texts_.end()) it = texts_.emplace(text).first;
  return reinterpret_cast<int64_t>(&*it);
}

const std::string& StringPool::text(int64_t handle) {
  static const std::string empty;
  return handle == 0 ? empty : *reinterpret_cast<const std::string*>(handle);
}

MutableTensor StringPool::elements(const TensorData& strings) {
  check(strings.dtype == DType::String, "cells of strings");
  // Two numbers an element; the dims are those of the strings.
  MutableTensor m = new_tensor(DType::I64, {checked_mul(strings.size(), 2)});
  m.data.dtype = DType::String;
  m.data.dims = strings.dims;
  for (size_t i = 0; i < strings.strings.size(); i++) m.as<StringElement>()[i] = {handle(strings.strings[i]), 0};
  return m;
}

Constant StringPool::constant(const MutableTensor& elements) {
  std::vector<std::string> list;
  for (int64_t i = 0; i < elements.data.size(); i++)
    list.push_back(text(reinterpret_cast<const StringElement*>(elements.bytes)[i].handle));
  return string_constant(elements.data.dims, std::move(list));
}

}  // namespace tc::interp
