// Step 3a: inputs that --input-value fixes become constants, as if the model gave them that default: a sample rate, a
// flag, the limits of a detector. What follows from them is known when the model is compiled.
//
//   input sr: int64[]  with  --input-value sr=16000   ->   initializer sr = 16000
#include <algorithm>
#include <charconv>
#include <optional>

#include "importer/context.h"
#include "importer/tensors.h"

namespace tc::importer {

namespace {

/// The shape that `n` numbers fill; nullopt if they fill none that was declared.
std::optional<Dims> shape_of(const onnx::TypeProto::Tensor& t, int64_t n) {
  if (!t.has_shape()) return n == 1 ? Dims{} : Dims{n};
  Dims dims;
  int64_t count = 1;
  for (const auto& d : t.shape().dim()) {
    const bool open = !d.has_dim_value() || d.dim_value() < 0;
    if (open && t.shape().dim_size() > 1) return {};
    dims.push_back(open ? n : d.dim_value());
    if (dims.back() > n) return {};
    count *= dims.back();
    if (count > n) return {};
  }
  return count == n ? std::optional(dims) : std::nullopt;
}

std::string integer_bytes(DType t, const std::string& text) {
  int64_t v = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (problem != std::errc() || end != text.data() + text.size()) return "";
  const int bits = t == DType::Bool ? 1 : info(t).bits;
  const int64_t least = is_signed_int(t) ? -(int64_t(1) << (bits - 1)) : 0;
  const int64_t most =
      bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t(1) << (is_signed_int(t) ? bits - 1 : bits)) - 1;
  if (v < least || v > most) return "";
  std::string bytes;  // little-endian, as raw data of a tensor
  for (int k = 0; k < info(t).bytes; k++) bytes += char(uint64_t(v) >> (8 * k) & 255);
  return bytes;
}

/// One number as raw data; empty if the text is no number of that type.
std::string bytes_of(DType t, const std::string& text) {
  if (is_int(t) || t == DType::Bool) return integer_bytes(t, text);
  double v = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (problem != std::errc() || end != text.data() + text.size()) return "";
  const Constant c = scalar_constant(t, v);
  return std::string(reinterpret_cast<const char*>(c->bytes.get()), size_t(info(t).bytes));
}

void fix(Context& c, onnx::GraphProto& g, const onnx::ValueInfoProto& v, const std::vector<std::string>& numbers) {
  const std::string by = "--input-value " + printable(v.name());
  const auto& type = v.type().tensor_type();
  const DType t = element_type(type.elem_type());
  const bool plain =
      v.type().has_tensor_type() && (t == DType::Bool || is_float(t) || (is_int(t) && info(t).bits >= 8));
  if (!plain) return c.error("TC0152", ExitCode::Usage, nullptr, by + ": the input is no tensor of plain numbers");
  const auto dims = shape_of(type, int64_t(numbers.size()));
  if (!dims)
    return c.error("TC0152", ExitCode::Usage, nullptr,
                   by + ": " + to_text(int64_t(numbers.size())) + " numbers do not fill the shape of the input");
  onnx::TensorProto tensor;
  tensor.set_name(v.name());
  tensor.set_data_type(type.elem_type());
  for (const int64_t d : *dims) tensor.add_dims(d);
  for (const std::string& n : numbers) {
    const std::string bytes = bytes_of(t, n);
    if (bytes.empty())
      return c.error("TC0152", ExitCode::Usage, nullptr,
                     by + ": " + quoted(n) + " is no number of type " + element_type_name(type.elem_type()));
    tensor.mutable_raw_data()->append(bytes);
  }
  for (auto& i : *g.mutable_initializer())
    if (i.name() == v.name()) {
      i = tensor;
      return;
    }
  *g.add_initializer() = tensor;
}

}  // namespace

void fix_inputs(Context& c, onnx::ModelProto& m) {
  onnx::GraphProto& g = *m.mutable_graph();
  for (const auto& [name, numbers] : c.options.input_values) {
    const auto v = std::find_if(g.input().begin(), g.input().end(), [&](const auto& i) { return i.name() == name; });
    if (v == g.input().end())
      c.error("TC0151", ExitCode::Usage, nullptr, "--input-value " + printable(name) + " names no input");
    else
      fix(c, g, *v, numbers);
  }
}

}  // namespace tc::importer
