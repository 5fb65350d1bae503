#include "emit_cuda/device_stmt.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "support/text.h"

namespace tc {
namespace {

std::string_view gpu_index(ForKind k) {
  switch (k) {
    case ForKind::BlockX: return "blockIdx.x";
    case ForKind::BlockY: return "blockIdx.y";
    case ForKind::BlockZ: return "blockIdx.z";
    case ForKind::ThreadX: return "threadIdx.x";
    case ForKind::ThreadY: return "threadIdx.y";
    case ForKind::ThreadZ: return "threadIdx.z";
    default: return "";
  }
}

}  // namespace

void DeviceStmtPrinter::print_for(const For& k) {
  const std::string index(gpu_index(k.kind));
  if (index.empty()) {
    if (k.kind == ForKind::Unroll) out_.line("#pragma unroll");
    if (std::find(f_.rolled.begin(), f_.rolled.end(), k.var) != f_.rolled.end()) out_.line("#pragma unroll 1");
    return print_block(loop_head(k), k.body);
  }
  out_.line(std::string("const ") + (wide() ? "int64_t " : "int ") + k.var->name + " = (int)" + index + ";");
  print(k.body);
}

// "float acc[4][8] = {};", "float left = tc_shuffle_up(sum, 1);"
void DeviceStmtPrinter::print_initialised(const Alloc& k) {
  const Stmts& list = as<Seq>(k.body)->list;
  const std::string type(info(k.buffer->dtype).c_type);
  out_.line(k.buffer->shape.empty() ? type + " " + intrin_text(*as<Intrin>(list[0])) + ";"
                                    : type + " " + k.buffer->name + extents(static_dims(k.buffer->shape)) + " = {};");
  for (size_t i = 1; i < list.size(); i++) print(list[i]);
}

void DeviceStmtPrinter::print_alloc(const Alloc& k) {
  if (std::find(f_.initialised.begin(), f_.initialised.end(), k.buffer) != f_.initialised.end())
    return print_initialised(k);
  if (k.buffer->scope != Scope::Shared) return StmtPrinter::print_alloc(k);
  if (f_.dynamic_shared > 0)
    out_.line("unsigned char *const " + k.buffer->name + " = tc_dynamic_shared();");
  else
    out_.line("__shared__ __align__(16) " + std::string(info(k.buffer->dtype).c_type) + " " + k.buffer->name +
              extents(static_dims(k.buffer->shape)) + ";");
  print(k.body);
}

// "TC_SHARED_VIEW(tile, float[2][16], shared + 4096);"
void DeviceStmtPrinter::declare(const Alias& k) {
  if (k.view->scope != Scope::Shared) return StmtPrinter::declare(k);
  const std::string type = std::string(info(k.view->dtype).c_type) + extents(static_dims(k.view->shape));
  out_.line("TC_SHARED_VIEW(" + k.view->name + ", " + type + ", " + expr_.pointer(k.base, k.offset) + ");");
}

void DeviceStmtPrinter::print_barrier(const Barrier& k) {
  out_.line(k.scope == Scope::Warp ? "__syncwarp();" : "__syncthreads();");
}

// "x + k * 64", "&tile[k][0]"
std::string DeviceStmtPrinter::memory_operand(const Buffer& b, const Exprs& index) {
  if (b->scope == Scope::Global || b->scope == Scope::Workspace) return expr_.pointer(b, index.at(0));
  const bool array = b->scope == Scope::Register || b->scope == Scope::Stack;
  return (array ? "" : "&") + expr_.register_element(b, index);
}

void DeviceStmtPrinter::print_prefetch(const Prefetch&) { throw InternalError("nothing is asked for early on a GPU"); }

}  // namespace tc
