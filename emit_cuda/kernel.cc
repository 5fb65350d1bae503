#include "emit_cuda/kernel.h"

#include <algorithm>
#include <functional>

#include "emit_cuda/device_stmt.h"
#include "ir/loop/build.h"
#include "ir/loop/cuda_limits.h"
#include "ir/loop/visit.h"
#include "support/text.h"

namespace tc {
namespace {

class CudaKernelPrinter {
 public:
  CudaKernelPrinter(const Kernel& k, const std::string& prefix)
      : k_(k), full_(prefix + "_" + k.name), wide_(k.wide_index) {}

  KernelText print(const std::string& arch) {
    print_head_comment(out_, k_, arch);
    for (const DeviceFunction& f : k_.device) device_function(f);
    text_.prototype = "cudaError_t " + full_ + "(" + host_parameters() + ")";
    text_.before = out_.take();
    host_function();
    text_.function = out_.take();
    setup_function();
    text_.setup = out_.take();
    return std::move(text_);
  }

 private:
  static std::string pointer(const Buffer& b, bool constant) {
    return (constant ? "const " : "") + std::string(info(b->dtype).c_type) + " *";
  }
  bool is_number(const Buffer& b) const {
    return std::any_of(k_.params.begin(), k_.params.end(), [&](const Param& p) { return p.by_value && p.buffer == b; });
  }

  void device_function(const DeviceFunction& f) {
    std::vector<std::string> params;
    for (const Buffer& b : f.params)
      params.push_back(is_number(b) ? "int64_t " + b->name
                                    : pointer(b, !is_written(f.body, b)) + "__restrict__ " + b->name);
    for (const For& t : f.host_loops) params.push_back(std::string(wide_ ? "int64_t " : "int ") + t.var->name);
    if (f.can_fail) params.push_back("int32_t *status");
    const std::string blocks = f.blocks_per_sm > 0 ? ", " + to_text(f.blocks_per_sm) : "";
    out_.line("static __global__ void __launch_bounds__(" + to_text(f.threads) + blocks + ")");
    out_.line(full_ + "_" + f.name + "(" + join(params, ", ") + ")");
    out_.open();
    out_.line("tc_grid_dependency_wait();");
    DeviceStmtPrinter body(out_, text_.needs, k_, f);
    body.print(f.body);
    out_.close();
    out_.blank();
  }

  std::string host_parameters() const {
    std::vector<std::string> params;
    for (const Param& p : k_.params) {
      const bool written = p.role == Param::Role::Output || p.role == Param::Role::Scratch;
      if (p.role == Param::Role::Status)
        params.push_back("int32_t *status");
      else if (p.role == Param::Role::Scratch)
        params.push_back("unsigned char *scratch");
      else if (p.by_value)
        params.push_back("int64_t " + p.buffer->name);
      else
        params.push_back(pointer(p.buffer, !written) + p.buffer->name);
    }
    params.push_back("cudaStream_t stream");
    return join(params, ", ");
  }

  std::string size(const Exprs& xyz) {
    size_t n = 3;
    while (n > 1 && is_const(xyz[n - 1], 1)) n--;
    std::vector<std::string> parts;
    for (size_t i = 0; i < n; i++) {
      const auto known = as_const_int(xyz[i]);
      parts.push_back(known ? to_text(*known) : "(unsigned)" + count_blocks(xyz[i]));
    }
    return "dim3(" + join(parts, ", ") + ")";
  }

  bool is_taken(const std::string& name) const {
    bool taken =
        std::any_of(k_.params.begin(), k_.params.end(), [&](const Param& p) { return p.buffer->name == name; });
    walk(k_.body, [&](const Stmt& s) {
      if (const Alias* a = as<Alias>(s)) taken |= a->view->name == name;
      if (const For* f = as<For>(s)) taken |= f->var->name == name;
      return !taken;
    });
    return taken;
  }

  // "int64_t blocks = (n0 * 144 + 15) / 16;", "if (blocks > 81) blocks = 81;"; the name.
  std::string count_blocks(const Expr& e) {
    std::string name;
    do {
      name = "blocks" + (++counted_ > 1 ? to_text(counted_) : "");
    } while (is_taken(name));
    ExprPrinter text(text_.needs);
    const std::function<void(const Expr&)> line = [&](const Expr& x) {
      const Apply* a = as<Apply>(x);
      if (!a || (a->op != Op::Min && a->op != Op::Max))
        return out_.line("int64_t " + name + " = " + text.index(x) + ";");
      line(a->args[0]);
      if (a->op == Op::Min && as_const_int(a->args[1]).value_or(0) > kMaxGridX)
        return out_.line("if (" + name + " > " + to_text(kMaxGridX) + ") return cudaErrorInvalidConfiguration;");
      const std::string bound = text.index(a->args[1]);
      out_.line("if (" + name + (a->op == Op::Min ? " > " : " < ") + bound + ") " + name + " = " + bound + ";");
    };
    line(rewrite(e, [](const Expr& x) -> Expr {
      const Load* l = as<Load>(x);  // of a parameter that is a number
      return l ? Expr(make_var(l->buffer->name)) : Expr();
    }));
    return name;
  }

  std::string launch(const Launch& l) {
    std::vector<std::string> args{full_ + "_" + l.kernel, size(l.grid), size(l.block)};
    const DeviceFunction* f = nullptr;
    for (const DeviceFunction& d : k_.device)
      if (d.name == l.kernel) f = &d;
    check(f != nullptr, "a launch has a function");
    args.insert(args.end(), {to_text(f->dynamic_shared), "stream"});
    for (const Buffer& b : l.buffers) args.push_back(b->name);
    for (const Expr& e : l.args) args.push_back((wide_ ? "(int64_t)" : "") + as<VarRef>(e)->var->name);
    if (f->can_fail) args.push_back("status");
    return "tc_launch(" + join(args, ", ") + ")";
  }

  // Aliases of scratch memory, launches and loops around them, in order. The first error ends the list.
  void host_body(const Stmt& s, size_t& launches) {
    if (!s) return;
    if (const Seq* q = as<Seq>(s)) {
      for (const Stmt& x : q->list) host_body(x, launches);
    } else if (const Comment* c = as<Comment>(s)) {
      out_.line("/* " + c->text + " */");
      host_body(c->body, launches);
    } else if (const Alias* a = as<Alias>(s)) {
      const std::string type = std::string(info(a->view->dtype).c_type) + " *";
      const auto at = as_const_int(a->offset);
      check(at.has_value(), "scratch memory is cut at constants");
      out_.line(type + "const " + a->view->name + " = (" + type + ")(void *)(" + a->base->name +
                (*at == 0 ? ")" : " + " + to_text(*at) + ")") + ";");
      host_body(a->body, launches);
    } else if (const For* f = as<For>(s)) {
      const auto begin = as_const_int(f->begin), extent = as_const_int(f->extent);
      check(begin && extent, "the host repeats launches a constant number of times");
      const std::string& v = f->var->name;
      if (launches++ == 0) out_.line("cudaError_t " + error_ + " = cudaSuccess;");
      const std::string end = v + " < " + to_text(*begin + *extent);
      out_.line("for (int " + v + " = " + to_text(*begin) + "; " + end + " && " + error_ + " == cudaSuccess; " + v +
                "++) {");
      out_.indent();
      succeeded_ = true;
      host_body(f->body, launches);
      succeeded_ = false;
      out_.close();
    } else {
      const Launch* l = as<Launch>(s);
      check(l != nullptr, "the host's part holds launches and views of scratch memory");
      const bool only = k_.device.size() == 1 && launches == 0;
      const std::string call = launch(*l);  // what it counts stands in front of it
      out_.line((only            ? "return "
                 : launches == 0 ? "cudaError_t " + error_ + " = "
                 : succeeded_    ? error_ + " = "
                                 : "if (" + error_ + " == cudaSuccess) " + error_ + " = ") +
                call + ";");
      succeeded_ = false;
      launches++;
    }
  }

  void host_function() {
    out_.line(text_.prototype);
    out_.open();
    for (const Param& p : k_.params)
      if (!passed(p)) out_.line("(void)" + (p.role == Param::Role::Scratch ? "scratch" : p.buffer->name) + ";");
    for (int64_t n = 2; is_taken(error_); n++) error_ = "e" + to_text(n);
    size_t launches = 0;
    host_body(k_.body, launches);
    if (launches == 0) out_.line("(void)stream;");
    const bool returned = launches == 1 && k_.device.size() == 1;
    if (!returned) out_.line(launches == 0 ? "return cudaSuccess;" : "return " + error_ + ";");
    out_.close();
  }

  void setup_function() {
    std::vector<std::string> calls;
    for (const DeviceFunction& f : k_.device)
      if (f.dynamic_shared > 0)
        calls.push_back("tc_allow_shared(" + full_ + "_" + f.name + ", " + to_text(f.dynamic_shared) + ")");
    if (calls.empty()) return;
    text_.setup_prototype = "cudaError_t " + full_ + "_setup(void)";
    out_.line(text_.setup_prototype);
    out_.open();
    for (size_t i = 0; i + 1 < calls.size(); i++)
      out_.line((i == 0 ? "cudaError_t e = " : "if (e == cudaSuccess) e = ") + calls[i] + ";");
    out_.line(calls.size() == 1 ? "return " + calls[0] + ";" : "return e != cudaSuccess ? e : " + calls.back() + ";");
    out_.close();
  }

  static bool reads(const Expr& e, const Buffer& b) {
    bool found = false;
    walk(e, [&](const Expr& x) {
      const Load* l = as<Load>(x);
      found |= l && l->buffer == b;
      return !found;
    });
    return found;
  }

  bool passed(const Param& p) const {
    if (p.role == Param::Role::Status) return true;
    bool found = false;
    walk(k_.body, [&](const Stmt& s) {
      if (const Launch* l = as<Launch>(s)) {
        for (const Buffer& b : l->buffers) found |= b == p.buffer;
        for (const Expr& e : l->grid) found |= reads(e, p.buffer);
      }
      if (const Alias* a = as<Alias>(s)) found |= a->base == p.buffer;
      return !found;
    });
    return found;
  }

  const Kernel& k_;
  std::string full_;
  bool wide_;
  int64_t counted_ = 0;      // names of numbers of blocks
  bool succeeded_ = false;   // the line before has just asked, and there was no error
  std::string error_ = "e";  // the variable of the first error
  SourceWriter out_;
  KernelText text_;
};

}  // namespace

KernelText print_cuda_kernel(const Kernel& k, const std::string& prefix, const std::string& arch) {
  return CudaKernelPrinter(k, prefix).print(arch);
}

std::string cuda_kernel_source(const KernelFile& f, const std::string& prefix, bool jit) {
  Needs needs = needs_of(f.kernels);
  needs.math = needs.parallel = false;  // tc_cuda.h has the functions
  std::string s = std::string(kLicenseLine) + "\n";
  if (jit) s += "#ifndef TC_LAUNCH_ONLY\n";
  s += "#include \"../tc_cuda.h\"\n" + include_lines(needs, "../");
  for (const KernelText& k : f.kernels) s += "\n" + k.before;
  if (jit) s += "#endif\n";
  s += "#ifndef __CUDACC_RTC__\n#include \"../" + prefix + "_kernels.cuh\"\n";
  for (const KernelText& k : f.kernels) s += "\n" + k.function + (k.setup.empty() ? "" : "\n" + k.setup);
  return s + "#endif\n";
}

}  // namespace tc
