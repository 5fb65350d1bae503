// infer_fragment: tiles of tensor cores are spread over the lanes of a warp (CUDA).
//
//   alloc acc: f32[4, 16, 8]                       alloc acc: f32[4, 4]
//   alloc a: f16[16, 16], b: f16[4, 16, 8]         alloc a: u32[4], b: u32[4, 2]
//   fill_fragment(acc[j], 0)                       unroll e in 0 .. 4: acc[j, e] = 0
//   load_fragment(a, p[row, k])                    ldmatrix_x4(a, p[row + lane % 16, k + lane / 16 * 8])
//   load_fragment_trans(b[j], q[column, k])  ->    ldmatrix_x2(b[j], q[column + lane % 8, k + lane / 8 % 2 * 8])
//   mma_f16_k16(acc[j], a, b[j])                   mma_f16_k16(acc[j], a, b[j])
//   fragment r in 0 .. 16:                         unroll h in 0 .. 2:
//     fragment c in 0 .. 4:
//       vector e in 0 .. 2:                            vector e in 0 .. 2:
//         y[r, 2 c + e] = acc[j, r, 2 c + e]             y[8 h + lane_m, 2 lane_n + e] = acc[j, 2 h + e]
//
// Which lane has an element, and in which of its registers, is given by the instruction: with E elements to a register
// of 32 bits,
//   sums    (r, c)    lane r % 8 * 4 + c / 2        register r / 8 * 2 + c % 2
//   left    (r, k)    lane r % 8 * 4 + k / E % 4    register r / 8 + k / (4 E) * 2
//   right   (k, c)    lane c * 4 + k / E % 4        register k / (4 E)
// so that of rows r a lane has r = lane / 4 and r + 8, and of columns two neighbours. Products of a warp group have the same
// sums in the same lanes, 16 rows a warp, and read their factors from shared memory. Loops over elements therefore go
// over all rows, and inside of that over pairs of columns. Factors are only loaded, made of sums, rounded and multiplied:
// ldmatrix brings eight rows of 16 bytes at a time to where they are needed. Of a tile with one
// column every lane has its own: numbers of its rows.
//
// The sums of a lane are where a left factor of f16 or bf16 wants them, two to a register. One of tf32 wants columns
// t and t + 4 of lane t where sums have 2 t and 2 t + 1: these take their columns, in the left factor as in the rows of
// the right one (a sum may be taken in any order), which is read by elements, since ldmatrix transposes two bytes only.
#include "passes/loop/infer_fragment.h"

#include <map>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/instruction.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/error.h"

namespace tc {
namespace {

constexpr int64_t kSums = kTileRows * kTileColumns / kWarp;  // of a tile in a lane

enum class Role : uint8_t { Sums, Left, Right, Rows };

// What a lane has of an array of tiles.
struct Spread {
  Role role;
  Buffer registers;  // the tiles' axes, then a tile's registers in a lane
};

bool is_fragment(const Buffer& b) { return b->scope == Scope::Fragment; }
bool is_numbers_of_rows(const Buffer& b) { return is_fragment(b) && b->shape.back() == Dim(1); }
const For* fragment_loop(const Stmt& s) {
  const For* f = as<For>(s);
  return f && f->kind == ForKind::Fragment ? f : nullptr;
}

// The code of a block's threads.
class Spreading {
 public:
  explicit Spreading(const For& threads) : threads_(threads) { find_roles(); }

  Stmt run() {
    if (spread_.empty()) return {};
    const auto n = as_const_int(threads_.extent);
    check(n && *n % kWarp == 0, "warps are whole where they multiply tiles");
    Stmt body = rewrite(threads_.body, {}, [&](const Stmt& s) { return lowered(s); });
    const Expr lane(lane_);
    body = with(lane_n_, floor_mod(lane, 4), body);
    body = with(lane_m_, floor_div(lane, 4), body);
    body = with(lane_, floor_mod(Expr(threads_.var), kWarp), body);
    return loop(threads_.var, threads_.extent, body, threads_.kind, threads_.begin);
  }

 private:
  static Stmt with(const Var& v, const Expr& value, const Stmt& body) {
    return uses_var(body, v) ? let(v, value, body) : body;
  }

  // Arrays of tiles by what the instructions make of them.
  void find_roles() {
    walk(threads_.body, [&](const Stmt& s) {
      if (const Alloc* k = as<Alloc>(s); k && is_numbers_of_rows(k->buffer)) find_numbers(k->buffer);
      if (const Intrin* k = as<Intrin>(s); k && !k->buffers.empty() && is_fragment(k->buffers[0])) {
        find_pairs(*k);
        if (const auto* m = meaning_as<MatrixInstruction>(*k)) find_tiles(*m, *k);
        if (const auto* m = meaning_as<GroupMatrixInstruction>(*k)) find_tile(k->buffers[0], Role::Sums, m->sum, kSums);
      }
      return true;
    });
  }

  void find_numbers(const Buffer& b) {
    Shape shape(b->shape.begin(), b->shape.end() - 2);
    shape.push_back(Dim(kTileRows / 8));
    spread_[b.get()] = {Role::Rows, make_buffer(b->name, b->dtype, shape, Scope::Register)};
  }

  // Factors of tf32 whose sum goes by pairs: left ones that are made of sums, right ones that lie along their columns.
  void find_pairs(const Intrin& k) {
    const Buffer& b = k.buffers[0];
    const size_t rank = b->shape.size();
    const bool right = b->shape[rank - 2] == Dim(kTileColumns) && b->shape[rank - 1] == Dim(kTileColumns);
    const auto* on = meaning_as<TileOperation>(k);
    if (b->dtype == DType::F32 && on && (on->form == TileForm::Join || (right && on->form == TileForm::Load)))
      paired_.insert(b.get());
  }

  void find_tiles(const MatrixInstruction& m, const Intrin& k) {
    const Role roles[] = {Role::Sums, Role::Left, Role::Right};
    const int64_t registers[] = {kSums, 4, 2};
    const Dims tiles[] = {{kTileRows, kTileColumns}, {kTileRows, m.depth}, {m.depth, kTileColumns}};
    for (size_t i = 0; i < 3; i++) {
      const Buffer& b = k.buffers.at(i);
      const size_t rank = b->shape.size();
      check(rank >= 2 && b->shape[rank - 2].value == tiles[i][0] && b->shape[rank - 1].value == tiles[i][1],
            "tiles have the shape that their instruction multiplies");
      find_tile(b, roles[i], i == 0 ? m.sum : DType::U32, registers[i]);
    }
  }

  void find_tile(const Buffer& b, Role role, DType type, int64_t registers) {
    const auto known = spread_.find(b.get());
    check(known == spread_.end() || known->second.role == role, "tiles are sums, or left or right factors");
    if (known != spread_.end()) return;
    Shape shape(b->shape.begin(), b->shape.end() - 2);
    shape.push_back(Dim(registers));
    spread_[b.get()] = {role, make_buffer(b->name, type, shape, Scope::Register)};
  }

  const Spread& spread(const Buffer& b) const {
    const auto it = spread_.find(b.get());
    check(it != spread_.end(), "tiles that no instruction multiplies");
    return it->second;
  }

  // Children are lowered already. Of two nested loops over elements the outer one is, with the other.
  Stmt lowered(const Stmt& s) const {
    if (const Alloc* k = as<Alloc>(s); k && is_fragment(k->buffer)) return alloc(spread(k->buffer).registers, k->body);
    if (const Intrin* k = as<Intrin>(s); k && !k->buffers.empty() && is_fragment(k->buffers[0])) return instruction(*k);
    if (const For* f = fragment_loop(s); f && is_const(f->begin, 0) && is_const(f->extent, kTileRows))
      return elements(*f);
    return {};
  }

  Stmt instruction(const Intrin& k) const {
    const IntrinCall c = parse(k);
    const IntrinOperand& t = c.operands.at(0);
    const Spread& own = spread(t.buffer);
    if (meaning_as<MatrixInstruction>(k)) {
      check(is_paired(c.operands[1].buffer) == is_paired(c.operands[2].buffer), "both factors in one order of the sum");
      std::vector<IntrinOperand> operands;
      for (const IntrinOperand& o : c.operands) operands.push_back({spread(o.buffer).registers, o.index});
      return intrin(k.name, operands);
    }
    const auto* on = meaning_as<TileOperation>(k);
    if (!on) {  // products of a warp group, and their end
      std::vector<IntrinOperand> operands = c.operands;
      operands[0].buffer = own.registers;
      return intrin(k.name, operands, c.scalars);
    }
    const std::string words = own.role == Role::Left ? "4" : "2";
    switch (on->form) {
      case TileForm::Fill: return filled(t, c.scalars.at(0));
      case TileForm::Load: return load_tile(t, c.operands.at(1), false);
      case TileForm::LoadTransposed: return load_tile(t, c.operands.at(1), true);
      case TileForm::Join: return join_sums(c);
      case TileForm::Round: return intrin("round_tf32_x" + words, {{own.registers, t.index}});
      case TileForm::Split: break;
    }
    const IntrinOperand& rounded = c.operands.at(1);
    return intrin("split_tf32_x" + words,
                  {{own.registers, t.index}, {spread(rounded.buffer).registers, rounded.index}});
  }

  Stmt filled(const IntrinOperand& t, const Expr& value) const {
    const Spread& own = spread(t.buffer);
    const Var e = make_var("e");
    Exprs at = t.index;
    at.push_back(Expr(e));
    check(own.role == Role::Sums, "sums are set to a number");
    return loop(e, kSums, store(own.registers, at, value), ForKind::Unroll);
  }

  // The lane's own row of 16 bytes: those of lanes 8 i .. 8 i + 7 make up matrix i, which goes to register i. Rows run
  // along the sum unless they are transposed.
  Stmt load_tile(const IntrinOperand& to, const IntrinOperand& from, bool trans) const {
    const Spread& own = spread(to.buffer);
    const int64_t bytes = info(from.buffer->dtype).bytes, half = 16 / bytes;
    const bool left = own.role == Role::Left, transposed = left == trans;
    check(own.role != Role::Sums, "sums are not loaded");
    if (transposed && own.role == Role::Right && from.buffer->dtype == DType::F32) return load_pairs(to, from);
    check(!transposed || bytes == 2, "only elements of two bytes are turned on their way");
    const Expr lane(lane_), row = floor_mod(lane, 16), high = floor_div(lane, 16),
                            next = floor_mod(floor_div(lane, 8), 2);
    Exprs at = from.index;
    Expr &outer = at[at.size() - 2], &inner = at.back();
    if (left) {
      outer = outer + (transposed ? high * Expr(half) + floor_mod(lane, 8) : row);
      inner = inner + (transposed ? next : high) * Expr(half);
    } else {
      outer = outer + (transposed ? row : floor_mod(lane, 8));
      if (!transposed) inner = inner + next * Expr(half);
    }
    return intrin(std::string(left ? "ldmatrix_x4" : "ldmatrix_x2") + (transposed ? "_trans" : ""),
                  {{own.registers, to.index}, {from.buffer, at}});
  }

  // Is the factor's sum in the order of pairs?
  bool is_paired(const Buffer& b) const { return paired_.count(b.get()) != 0; }

  // Rows 2 t and 2 t + 1 of the lane's column.
  Stmt load_pairs(const IntrinOperand& to, const IntrinOperand& from) const {
    Stmts list;
    for (int64_t w = 0; w < 2; w++) {
      Exprs own = to.index, at = from.index;
      own.push_back(Expr(w));
      at[at.size() - 2] = at[at.size() - 2] + Expr(lane_n_) * Expr(2) + Expr(w);
      at.back() = at.back() + Expr(lane_m_);
      list.push_back(store(spread(to.buffer).registers, own, bitcast(DType::U32, load(from.buffer, at))));
    }
    return seq(std::move(list));
  }

  // Register w of a left factor: of rows r or r + 8, its first or its second half of columns.
  Stmt join_sums(const IntrinCall& c) const {
    const IntrinOperand& to = c.operands[0];
    const DType type = to.buffer->dtype;
    const bool halves = info(type).bytes == 2;
    check(
        spread(to.buffer).role == Role::Left && (halves || type == DType::F32) && c.operands.size() == (halves ? 3 : 2),
        "sums become a left factor");
    Stmts list;
    for (int64_t w = 0; w < 4; w++) {
      auto sum = [&](size_t tile, int64_t slot) {
        const IntrinOperand& from = c.operands[1 + tile];
        check(spread(from.buffer).role == Role::Sums, "a factor is made of sums");
        Exprs index = from.index;
        index.push_back(Expr(slot));
        return load(spread(from.buffer).registers, index);
      };
      auto bits = [&](int64_t e) {
        return cast(DType::U32, bitcast(DType::U16, cast(type, sum(size_t(w / 2), w % 2 * 2 + e))));
      };
      const Expr word = halves ? apply(Op::BitOr, {bits(0), apply(Op::Shl, {bits(1), make_int(DType::U32, 16)})})
                               : bitcast(DType::U32, sum(0, w % 2 * 2 + w / 2));
      Exprs index = to.index;
      index.push_back(Expr(w));
      list.push_back(store(spread(to.buffer).registers, index, word));
    }
    return seq(std::move(list));
  }

  // Both loops over a tile's elements, or that over its rows alone.
  Stmt elements(const For& rows) const {
    const Var h = make_var("h");
    Stmt body = rewrite(rows.body, {}, [&](const Stmt& s) -> Stmt {
      const For* f = fragment_loop(s);
      return f ? pairs(*f, rows.var, h) : Stmt();
    });
    body = numbers_of_rows(body, rows.var, h);
    body = substitute(body, {{rows.var.get(), Expr(h) * Expr(8) + Expr(lane_m_)}});
    return loop(h, 2, body, ForKind::Unroll);
  }

  Stmt numbers_of_rows(const Stmt& s, const Var& row, const Var& h) const {
    auto slot = [&](const Exprs& index) {
      const VarRef* r = as<VarRef>(index[index.size() - 2]);
      check(r && r->var == row, "the number of a row that the lane has");
      Exprs registers(index.begin(), index.end() - 2);
      registers.push_back(Expr(h));
      return registers;
    };
    return rewrite(
        s,
        [&](const Expr& e) -> Expr {
          const Load* l = as<Load>(e);
          return l && is_numbers_of_rows(l->buffer) ? load(spread(l->buffer).registers, slot(l->index)) : Expr();
        },
        [&](const Stmt& x) -> Stmt {
          const Store* k = as<Store>(x);
          if (!k || !is_numbers_of_rows(k->buffer)) return {};
          return store(spread(k->buffer).registers, slot(k->index), k->value, k->reduce);
        });
  }

  Stmt pairs(const For& f, const Var& row, const Var& h) const {
    check(is_const(f.begin, 0) && is_const(f.extent, kTileColumns / 2), "a loop over all pairs of columns of a tile");
    auto slot = [&](const Buffer& b, const Exprs& index) {
      check(spread(b).role == Role::Sums, "elements of sums");
      // Under a test that leaves one row or one pair of columns, its number stands for the variable.
      const Expr& r = index[index.size() - 2];
      const auto at = affine_in(index.back(), {f.var});
      const bool own_row = as_const_int(r) || (as<VarRef>(r) && as<VarRef>(r)->var == row);
      check(own_row && at && (at->coefficients[0] == 2 || at->coefficients[0] == 0), "an element that the lane has");
      Exprs registers(index.begin(), index.end() - 2);
      registers.push_back(Expr(h) * Expr(2) + (at->coefficients[0] == 2 ? at->rest : floor_mod(at->rest, 2)));
      return registers;
    };
    const Stmt body = rewrite(
        f.body,
        [&](const Expr& e) -> Expr {
          const Load* l = as<Load>(e);
          return l && is_element(l->buffer) ? load(spread(l->buffer).registers, slot(l->buffer, l->index)) : Expr();
        },
        [&](const Stmt& s) -> Stmt {
          const Store* k = as<Store>(s);
          if (!k || !is_element(k->buffer)) return {};
          return store(spread(k->buffer).registers, slot(k->buffer, k->index), k->value, k->reduce);
        });
    return substitute(body, {{f.var.get(), Expr(lane_n_)}});
  }

  static bool is_element(const Buffer& b) { return is_fragment(b) && !is_numbers_of_rows(b); }

  const For& threads_;
  std::set<const BufferDef*> paired_;          // looked up only
  std::map<const BufferDef*, Spread> spread_;  // looked up only
  const Var lane_ = make_var("lane"), lane_m_ = make_var("lane_m"), lane_n_ = make_var("lane_n");
};

}  // namespace

Stmt infer_fragment(const Stmt& s) {
  return rewrite(s, {}, [](const Stmt& x) -> Stmt {
    const For* f = as<For>(x);
    return f && f->kind == ForKind::ThreadX ? Spreading(*f).run() : Stmt();
  });
}

}  // namespace tc
