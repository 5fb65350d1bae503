// Many rows would unpack each number many times. They share what is unpacked once, for a stretch of k that fits a small
// array on the stack. Rows and sums are copies without gaps, which stay in the caches wherever the tensors lie, and serve
// all panels of a group:
//
//   for part, group of panels in part, block of rows:     parts are chunks for threads
//     sums[panel, row, v] = start
//     for stretch of k:
//       rows[row, k] = p[row, k]
//       for panel in group:
//         unpacked[k, v] = (number - zero) * scale
//         for rows, MR at a time:  sums[panel, row i, v] += sum(k) rows[row i, k] * unpacked[k, v]
//     y[row, v] = epilogue(sums[panel, row, v])
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "templates/cpu/few_bits.h"

namespace tc {
namespace {

class ManyRows : FewBitsLoops {
 public:
  using FewBitsLoops::FewBitsLoops;

  Stmt build(Scheduled& s) {
    panels_.pack(s);
    const int64_t groups = ceil_div(panels_.count(), plan_.group), parts = ceil_div(groups, plan_.part);
    const Var part = make_var("part"), group = make_var("group");
    group_ = groups == 1 ? Expr(0) : plan_.part == 1 ? Expr(part) : Expr(group);
    Stmt body = of_group();
    const Expr begin = Expr(part) * Expr(plan_.part), most = Expr(plan_.part);
    if (plan_.part > 1)
      body =
          loop(group, groups % plan_.part == 0 ? most : min(most, Expr(groups) - begin), body, ForKind::Serial, begin);
    if (parts == 1) return substitute(body, {{part.get(), Expr(0)}});
    return loop(part, parts, body, plan_.parallel ? ForKind::Parallel : ForKind::Serial);
  }

 private:
  Stmt of_group() {
    const Var block = make_var("rows");
    const int64_t size = plan_.block, whole = rows_ / size, rest = rows_ % size;
    Stmt list;
    if (whole > 0) list = of_rows(whole == 1 ? Expr(0) : Expr(block) * Expr(size), size);
    if (whole > 1) list = loop(block, whole, list);
    if (rest > 0) list = seq({list, of_rows(Expr(whole * size), rest)});
    return list;
  }

  Stmt of_rows(const Expr& first, int64_t count) {
    first_ = first;
    const Var stretch = make_var(m_.k[0].var->name + "_o");
    const int64_t stretches = ceil_div(depth_, plan_.stretch);
    stretch_ = stretches == 1 ? Expr(0) : Expr(stretch);
    steps_ = depth_ % plan_.stretch == 0 ? Expr(plan_.stretch)
                                         : min(Expr(plan_.stretch), Expr(depth_) - stretch_ * Expr(plan_.stretch));
    copy_ = make_buffer(m_.p->name + "_rows", DType::F32, {Dim(count * plan_.stretch)}, Scope::Workspace);
    unpacked_ = make_buffer("unpacked", DType::F32, {Dim(plan_.stretch * columns_)}, Scope::Stack);
    sums_ = make_buffer("sums", DType::F32, {Dim(plan_.group * count * columns_)}, Scope::Workspace);
    height_ = count;
    const Stmt panels = of_panels([&] { return alloc(unpacked_, seq({unpack(), row_tiles(count)})); });
    Stmt products = alloc(copy_, seq({copy_rows(count), panels}));
    if (stretches > 1) products = loop(stretch, stretches, products);
    const Stmt start = of_panels([&] {
      return of_rows_and_vectors(count, [&](const Expr& row, const Expr& column) {
        return store(sums_, {ramp(sum_at(row, column))}, broadcast(vector_form(m_.start, point(first_ + row, column))));
      });
    });
    const Stmt finish = of_panels([&] {
      return of_rows_and_vectors(count, [&](const Expr& row, const Expr& column) {
        const Expr sum = load(sums_, {ramp(sum_at(row, column))});
        return store_lanes(m_.c.out, m_.c.out_index, m_.c.epilogue, point(first_ + row, column, sum));
      });
    });
    return alloc(sums_, seq({start, products, finish}));
  }

  Stmt of_rows_and_vectors(int64_t count, const OfTile& body) const {
    const Var row = make_var(m_.rows[0].var->name);
    return loop(row, count, of_vectors([&](const Expr& column) { return body(Expr(row), column); }));
  }

  Expr sum_at(const Expr& row, const Expr& column) const {
    const Expr panel = panel_ - group_ * Expr(plan_.group);
    return (panel * Expr(height_) + row) * Expr(columns_) + column;
  }

  // The panels of the group, of which the last one may have fewer.
  Stmt of_panels(const std::function<Stmt()>& make) {
    const Var panel = make_var("nb");
    const Expr begin = group_ * Expr(plan_.group), most = Expr(plan_.group);
    panel_ = panels_.count() == 1 ? Expr(0) : Expr(panel);
    const Stmt body = make();
    if (panels_.count() == 1) return body;
    const Expr count = panels_.count() % plan_.group == 0 ? most : min(most, Expr(panels_.count()) - begin);
    return loop(panel, count, body, ForKind::Serial, begin);
  }

  Stmt copy_rows(int64_t count) const {
    const Var row = make_var(m_.rows[0].var->name), k = make_var(m_.k[0].var->name);
    const Expr value = left(first_ + Expr(row), stretch_ * Expr(plan_.stretch) + Expr(k));
    const Stmt copy = store(copy_, {Expr(row) * Expr(plan_.stretch) + Expr(k)}, value);
    return loop(row, count, loop(k, steps_, copy, depth_ % plan_.stretch == 0 ? ForKind::Vector : ForKind::Serial));
  }

  // (number - zero) * scale for the stretch, block by block.
  Stmt unpack() {
    const int64_t block = panels_.blocks() == 1 ? plan_.stretch : std::min(w_.block, plan_.stretch);
    const int64_t parts = plan_.stretch / block;
    const Var part = make_var("block");
    const Expr p = parts == 1 ? Expr(0) : Expr(part);
    Expr index = 0;
    if (panels_.blocks() > 1)
      index = parts == 1 ? stretch_ / Expr(w_.block / plan_.stretch) : stretch_ * Expr(parts) + p;
    const Stmt body = with_zero(index, [&] {
      if (!panels_.has_scale()) return unpack_block(p, block, nullptr);
      const Buffer scale = registers("scale");
      const Stmt fetch = of_vectors(
          [&](const Expr& column) { return store(scale, {ramp(column)}, panels_.scale(panel_, index, column)); });
      return alloc(scale, seq({fetch, unpack_block(p, block, scale)}));
    });
    return parts == 1 ? body : loop(part, parts, body);
  }

  Stmt unpack_block(const Expr& part, int64_t length, const Buffer& scale) const {
    const int64_t n = w_.per_word();
    const Var word = make_var("word");
    const Expr in_part = length == n ? Expr(0) : Expr(word);
    const Expr first = stretch_ * Expr(plan_.stretch / n) + part * Expr(length / n);
    const Stmt body = with_numbers(first + in_part, n, [&](const Expr& j, const Buffer& x) {
      const Expr k = part * Expr(length) + in_part * Expr(n) + j;
      return of_vectors([&](const Expr& column) {
        const Expr number = load(x, {ramp(column)});
        return store(unpacked_, {ramp(k * Expr(columns_) + column)},
                     scale ? number * load(scale, {ramp(column)}) : number);
      });
    });
    return length == n ? body : loop(word, length / n, body);
  }

  Stmt row_tiles(int64_t count) const {
    const int64_t mr = plan_.tile.rows, whole = count / mr, rest = count % mr;
    const Var t = make_var(m_.rows[0].var->name + "_o");
    Stmt list;
    if (whole > 0) list = loop(t, whole, tile(mr, Expr(t) * Expr(mr)));
    if (rest > 0) list = seq({list, tile(rest, Expr(whole * mr))});
    return list;
  }

  // sums[row i, v] += sum over the stretch.
  Stmt tile(int64_t height, const Expr& row) const {
    const Buffer acc = registers("acc", height);
    const Stmt fetch = of_tile(height, [&](const Expr& i, const Expr& column) {
      return store(acc, {i, ramp(column)}, load(sums_, {ramp(sum_at(row + i, column))}));
    });
    const Var k = make_var(m_.k[0].var->name);
    const Stmt products = of_tile(height, [&](const Expr& i, const Expr& column) {
      const Expr p = load(copy_, {(row + i) * Expr(plan_.stretch) + Expr(k)});
      return store(acc, {i, ramp(column)}, p * load(unpacked_, {ramp(Expr(k) * Expr(columns_) + column)}), Op::Add);
    });
    const Stmt keep = of_tile(height, [&](const Expr& i, const Expr& column) {
      return store(sums_, {ramp(sum_at(row + i, column))}, load(acc, {i, ramp(column)}));
    });
    return alloc(acc, seq({fetch, loop(k, steps_, products), keep}));
  }

  Expr group_, first_, stretch_, steps_;
  int64_t height_ = 0;  // of the block of rows
  Buffer copy_, sums_, unpacked_;
};

}  // namespace

Stmt many_rows(const FewBitsProduct& p, const FewBitsPlan& plan, Scheduled& s) { return ManyRows(p, plan).build(s); }

}  // namespace tc
