// Step 3: every tensor of the model (initializers, attributes, sparse ones, defaults of functions) is checked and read.
#include "importer/tensors.h"

#include <cstring>

#include "importer/decode.h"
#include "importer/external_data.h"
#include "importer/wire.h"

namespace tc::importer {

namespace {

constexpr const char* kReferenceKey = "tc";

void clear_data(onnx::TensorProto& t) {
  t.clear_float_data();
  t.clear_int32_data();
  t.clear_string_data();
  t.clear_int64_data();
  t.clear_double_data();
  t.clear_uint64_data();
  t.clear_raw_data();
  t.clear_segment();
  t.clear_external_data();
  t.clear_data_location();
  t.clear_doc_string();
}

/// Replaces the data of `t` by a reference to the stored constant.
void store(Context& c, onnx::TensorProto& t, Constant data) {
  clear_data(t);
  t.set_data_location(onnx::TensorProto::EXTERNAL);
  auto* e = t.add_external_data();
  e->set_key(kReferenceKey);
  e->set_value(to_text(int64_t(c.stored.size())));
  c.stored.push_back(std::move(data));
}

class TensorLoader {
 public:
  explicit TensorLoader(Context& c) : c_(c), external_(c) {}

  /// Checks and reads one tensor; false if it was reported.
  bool load(onnx::TensorProto& t) {
    try {
      return load_checked(t);
    } catch (const Error& e) {  // sizes that do not fit in 64 bits
      c_.error("TC0121", ExitCode::Rejected, nullptr, name(t) + e.diagnostic().message);
    } catch (const std::bad_alloc&) {
      c_.error("TC0501", ExitCode::Limit, nullptr, name(t) + "there is not enough memory to read it");
    }
    return false;
  }

  void load_graph(onnx::GraphProto& g);
  void load_attribute(onnx::AttributeProto& a);

 private:
  static std::string name(const onnx::TensorProto& t) { return "tensor " + quoted(t.name()) + ": "; }
  bool no(const onnx::TensorProto& t, const char* code, const std::string& why) {
    c_.reject(code, nullptr, name(t) + why);
    return false;
  }

  bool load_checked(onnx::TensorProto& t);
  bool check_type(const onnx::TensorProto& t, DType& type, Dims& dims);
  bool read(onnx::TensorProto& t, DType type, const Dims& dims, Constant& data);
  bool read_external(const onnx::TensorProto& t, DType type, const Dims& dims, Constant& data);
  bool densify(onnx::SparseTensorProto& s, onnx::TensorProto& dense);

  Context& c_;
  ExternalData external_;
  std::map<std::tuple<std::string, int64_t, DType, Dims>, Constant> shared_;  // external ranges read so far
};

bool TensorLoader::check_type(const onnx::TensorProto& t, DType& type, Dims& dims) {
  if (t.dims_size() > kMaxRank) return no(t, "TC0121", "it has more than " + to_text(int64_t(kMaxRank)) + " dims");
  for (const int64_t d : t.dims()) {
    if (d < 0) return no(t, "TC0121", "it has the negative dim " + to_text(d));
    dims.push_back(d);
  }
  type = element_type(t.data_type());
  if (type != DType::Undefined) return true;
  const bool known = onnx::TensorProto::DataType_IsValid(t.data_type()) && t.data_type() != 0;
  c_.error("TC0122", known ? ExitCode::Unsupported : ExitCode::Rejected, nullptr,
           name(t) + "element type " + element_type_name(t.data_type()) + " is not supported");
  return false;
}

bool TensorLoader::load_checked(onnx::TensorProto& t) {
  DType type = DType::Undefined;
  Dims dims;
  if (!check_type(t, type, dims)) return false;
  const int64_t n = num_elements(dims);
  const int64_t bytes = checked_mul(n, std::max(info(type).bytes, 1));
  // A product of dims with a zero among them is zero, but its other dims must still be sizes.
  c_.tensor_bytes = checked_add(c_.tensor_bytes, bytes);
  if (c_.tensor_bytes > c_.options.max_tensor_bytes) {
    c_.error("TC0501", ExitCode::Limit, nullptr,
             "the constants of the model take more than " + to_text(c_.options.max_tensor_bytes) + " bytes",
             {"raise the limit with --limit-memory"});
    return false;
  }
  Constant data;
  if (!read(t, type, dims, data)) return false;
  if (!data) return true;  // small and already in its plain form
  if (bytes >= kInlineBytes) {
    store(c_, t, std::move(data));
    return true;
  }
  clear_data(t);
  if (type == DType::String) {
    for (const std::string& s : data->strings) t.add_string_data(s);
  } else if (packed_bits(type) < 8) {  // plain form of these: one value an element
    for (int64_t i = 0; i < n; ++i) t.add_int32_data(data->bytes.get()[i]);
  } else {
    t.set_raw_data(data->bytes.get(), data->num_bytes);
  }
  return true;
}

/// Finds the bytes of the tensor, wherever they are. Leaves `data` null for typed data that can stay as it is.
bool TensorLoader::read(onnx::TensorProto& t, DType type, const Dims& dims, Constant& data) {
  const bool external = t.data_location() == onnx::TensorProto::EXTERNAL;
  const int64_t n = num_elements(dims);
  const int sources = (typed_values(t) > 0) + t.has_raw_data() + t.has_segment() + external;
  if (sources > 1) return no(t, "TC0123", "its data is given in more than one form");
  if (!external && t.external_data_size() > 0) return no(t, "TC0123", "it names external data but is not external");
  if (external) return read_external(t, type, dims, data);
  if (t.has_raw_data() || t.has_segment()) {
    if (type == DType::String) return no(t, "TC0123", "strings cannot be raw data");
    const int64_t want = packed_bytes(type, n);
    const int64_t have = t.has_raw_data() ? int64_t(t.raw_data().size()) : t.segment().end() - t.segment().begin();
    if (have != want)
      return no(t, "TC0120", "its raw data has " + to_text(have) + " bytes, its dims ask for " + to_text(want));
    return raw_constant(
               type, dims,
               [&](uint8_t* to, size_t count) {
                 if (t.has_segment()) return read_at(c_.file.fd(), t.segment().begin(), to, count);
                 std::memcpy(to, t.raw_data().data(), count);
                 return true;
               },
               data) ||
           no(t, "TC0101", "its data cannot be read");
  }
  const TypedField f = typed_field(t, type, n);
  if (typed_values(t) != f.given) return no(t, "TC0123", "its data is in a field that its element type does not use");
  if (f.given != f.needed && !f.also_unpacked)
    return no(t, "TC0120", "it has " + to_text(f.given) + " values, its dims ask for " + to_text(f.needed));
  data = typed_constant(t, type, dims);
  return true;
}

bool TensorLoader::read_external(const onnx::TensorProto& t, DType type, const Dims& dims, Constant& data) {
  if (type == DType::String) return no(t, "TC0123", "strings cannot be external data");
  ExternalData::Range r;
  if (!external_.locate(t, packed_bytes(type, num_elements(dims)), r)) return false;
  Constant& known = shared_[{r.location, r.offset, type, dims}];
  if (!known && !raw_constant(
                    type, dims, [&](uint8_t* to, size_t count) { return read_at(r.fd, r.offset, to, count); }, known))
    return no(t, "TC0101", "its external data cannot be read");
  data = known;
  return true;
}

/// ONNX's library does not convert sparse tensors, and nothing gains from keeping one: the dense tensor takes its
/// place.
bool TensorLoader::densify(onnx::SparseTensorProto& s, onnx::TensorProto& dense) {
  onnx::TensorProto& values = *s.mutable_values();
  const std::string who = "sparse tensor " + quoted(values.name()) + ": ";
  if (!load(values) || !load(*s.mutable_indices())) return false;
  const Constant v = constant_of(c_, values), at = constant_of(c_, s.indices());
  const Dims dims(s.dims().begin(), s.dims().end());
  auto bad = [&](const std::string& why) {
    c_.reject("TC0124", nullptr, who + why);
    return false;
  };
  for (const int64_t d : dims)
    if (d < 0) return bad("it has a negative dim");
  if (dims.empty() || dims.size() > size_t(kMaxRank)) return bad("its rank is not 1 to " + to_text(int64_t(kMaxRank)));
  if (v->dtype == DType::String) return bad("strings cannot be sparse");
  const int64_t count = v->size(), rank = int64_t(dims.size()), width = info(v->dtype).bytes;
  int64_t bytes = 0;
  try {
    bytes = checked_mul(num_elements(dims), width);
  } catch (const Error&) {
    return bad("its dims do not fit in 64 bits");
  }
  if (v->dims.size() != 1 || at->dtype != DType::I64)
    return bad("its values are not a vector or its indices not int64");
  const bool linear = at->dims == Dims{count};
  if (!linear && at->dims != Dims{count, rank}) return bad("its indices do not have the shape of its values");
  if (c_.tensor_bytes + bytes > c_.options.max_tensor_bytes || bytes < 0) {
    c_.error("TC0501", ExitCode::Limit, nullptr, who + "it is too large when it is filled up",
             {"raise the limit with --limit-memory"});
    return false;
  }
  c_.tensor_bytes += bytes;
  MutableTensor m = new_tensor(v->dtype, dims);
  const int64_t total = num_elements(dims);
  int64_t before = -1;
  for (int64_t i = 0; i < count; ++i) {
    int64_t index = linear ? at->as_int(i) : 0;
    for (int64_t k = 0; !linear && k < rank; ++k) {
      const int64_t part = at->as_int(i * rank + k);
      if (part < 0 || part >= dims[size_t(k)]) return bad("an index is out of range");
      index = index * dims[size_t(k)] + part;
    }
    if (index < 0 || index >= total) return bad("an index is out of range");
    if (index <= before) return bad("its indices are not in ascending order");
    before = index;
    std::memcpy(m.bytes + index * width, v->bytes.get() + i * width, size_t(width));
  }
  dense.set_name(values.name());
  dense.set_data_type(values.data_type());
  for (const int64_t d : dims) dense.add_dims(d);
  store(c_, dense, std::make_shared<TensorData>(std::move(m.data)));
  return true;
}

void TensorLoader::load_attribute(onnx::AttributeProto& a) {
  if (a.has_t()) load(*a.mutable_t());
  for (auto& t : *a.mutable_tensors()) load(t);
  if (a.has_sparse_tensor()) {
    onnx::TensorProto dense;
    if (densify(*a.mutable_sparse_tensor(), dense)) {
      a.clear_sparse_tensor();
      a.set_type(onnx::AttributeProto::TENSOR);
      if (a.name() == "sparse_value") a.set_name("value");
      *a.mutable_t() = std::move(dense);
    }
  }
}

void TensorLoader::load_graph(onnx::GraphProto& g) {
  for (auto& t : *g.mutable_initializer()) load(t);
  for (auto& s : *g.mutable_sparse_initializer()) {
    onnx::TensorProto dense;
    if (densify(s, dense)) *g.add_initializer() = std::move(dense);
  }
  g.clear_sparse_initializer();
  for (auto& n : *g.mutable_node())
    for (auto& a : *n.mutable_attribute()) load_attribute(a);
}

}  // namespace

Constant constant_of(const Context& c, const onnx::TensorProto& t) {
  if (t.data_location() == onnx::TensorProto::EXTERNAL) {
    check(t.external_data_size() == 1 && t.external_data(0).key() == kReferenceKey, "a tensor was not loaded");
    return c.stored.at(size_t(std::stoul(t.external_data(0).value())));
  }
  const DType type = element_type(t.data_type());
  check(type != DType::Undefined, "a tensor without an element type");
  const Dims dims(t.dims().begin(), t.dims().end());
  if (!t.has_raw_data()) {
    const TypedField f = typed_field(t, type, num_elements(dims));
    check(f.given == f.needed || f.also_unpacked, "a tensor with the wrong number of values");
    return typed_constant(t, type, dims);
  }
  check(int64_t(t.raw_data().size()) == packed_bytes(type, num_elements(dims)), "a tensor with the wrong size");
  Constant out;
  raw_constant(
      type, dims, [&](uint8_t* to, size_t n) { return std::memcpy(to, t.raw_data().data(), n) != nullptr; }, out);
  return out;
}

void load_tensors(Context& c, onnx::ModelProto& m) {
  TensorLoader loader(c);
  for_each_graph(*m.mutable_graph(), [&](onnx::GraphProto& g) { loader.load_graph(g); });
  for (auto& f : *m.mutable_functions()) {
    for (auto& a : *f.mutable_attribute_proto()) loader.load_attribute(a);
    for (auto& n : *f.mutable_node())
      for (auto& a : *n.mutable_attribute()) {
        loader.load_attribute(a);
        if (a.has_g()) for_each_graph(*a.mutable_g(), [&](onnx::GraphProto& g) { loader.load_graph(g); });
      }
  }
}

}  // namespace tc::importer
