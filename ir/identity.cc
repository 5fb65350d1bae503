#include "ir/identity.h"

#include <cstring>
#include <map>

#include "ir/fields.h"

namespace tc {
namespace {

// Numbers have seven bits a byte, the last byte has the eighth bit clear; lists and strings begin with their length.
class Encoder {
 public:
  std::string bytes;

  // A struct: name and value of each field that has not its default, then an empty name.
  template <class S>
  void put(const S& s) requires std::is_class_v<S> {
    const std::vector<std::string>& defaults = default_fields<S>();
    size_t k = 0;
    for_each_field(s, [&](const char* name, const auto& value) {
      const size_t begin = bytes.size();
      bytes.append(name).push_back('\0');
      const size_t at = bytes.size();
      put(value);
      if (bytes.compare(at, std::string::npos, defaults[k++]) == 0) bytes.resize(begin);
    });
    bytes.push_back('\0');
  }

  template <class T>
  void put(T v) requires std::is_integral_v<T> || std::is_enum_v<T> {
    uint64_t n = uint64_t(int64_t(v));
    for (; n >= 128; n >>= 7) bytes.push_back(char(n | 128));
    bytes.push_back(char(n));
  }
  void put(double v) {
    uint64_t n;
    std::memcpy(&n, &v, sizeof n);
    put(n);
  }
  void put(const std::string& s) {
    put(s.size());
    bytes += s;
  }
  template <class T>
  void put(const std::vector<T>& list) {
    put(list.size());
    for (const T& x : list) put(x);
  }
  template <class T>
  void put(const std::optional<T>& v) {
    put(v.has_value());
    if (v) put(*v);
  }
  template <class... K>
  void put(const std::variant<K...>& v) {
    put(v.index());
    std::visit([&](const auto& k) { put(k); }, v);
  }

  void put(const Var& v) { put_once(v); }
  void put(const Buffer& b) { put_once(b); }
  void put(const Expr& e) {
    put(bool(e));
    if (!e) return;
    put(e->dtype);
    put(e->vector);
    put(e->kind);
  }
  void put(const Stmt& s) {
    put(bool(s));
    if (s) put(s->kind);
  }

  void put(const ModelText&) {}
  void put(const std::vector<ModelText>&) {}
  void put(const KernelWork&) {}  // an estimate
  void put(const std::function<Constant()>&) {}
  void put(const Constant& c) {
    put(bool(c));
    if (!c) return;
    put(c->dtype);
    put(c->dims);
  }

 private:
  // Null, or its number; where it appears first its definition, too.
  template <class T>
  void put_once(const std::shared_ptr<const T>& p) {
    if (!p) return put(0);
    const auto [it, is_new] = order_.try_emplace(p.get(), order_.size() + 1);
    put(it->second);
    if (is_new) put(*p);
  }

  template <class S>
  static const std::vector<std::string>& default_fields() {
    static const std::vector<std::string> fields = [] {
      std::vector<std::string> list;
      for_each_field(S{}, [&](const char*, const auto& value) {
        Encoder e;
        e.put(value);
        list.push_back(std::move(e.bytes));
      });
      return list;
    }();
    return fields;
  }

  std::map<const void*, size_t> order_;  // looked up only
};

template <class T>
std::string encoded(const T& v) {
  Encoder e;
  e.put(v);
  return std::move(e.bytes);
}

}  // namespace

std::string identity_of(const TensorFn& fn) { return encoded(fn); }
std::string identity_of(const Stmt& s) { return encoded(s); }
std::string identity_of(const Kernel& k) { return encoded(k); }

std::string identity_of(const Program& p) {
  Encoder e;
  for_each_field(p, [&](const char* name, const auto& value) {
    const std::string_view field = name;
    // The layout is made of the rest, and holds for weights in the program and outside of it. Without variants it is what it
    // was before there were any.
    if (field == "variants" && p.variants.empty()) return;
    if (field != "name" && field != "weights_layout" && field != "external_weights") e.put(value);
  });
  return std::move(e.bytes);
}

}  // namespace tc
