#include "ir/ops/operator_table.h"

#include <nlohmann/json.hpp>

#include "ir/ops/op.h"
#include "support/json_text.h"

namespace tc {
namespace {

std::string default_text(const Attr& a) {
  auto list = [](const auto& values) {
    std::vector<std::string> parts;
    for (const auto& v : values) parts.push_back(to_text(v));
    return "[" + join(parts, ", ") + "]";
  };
  if (auto* i = std::get_if<int64_t>(&a)) return to_text(*i);
  if (auto* f = std::get_if<float>(&a)) return to_text(*f);
  if (auto* s = std::get_if<std::string>(&a)) return *s;
  if (auto* l = std::get_if<std::vector<int64_t>>(&a)) return list(*l);
  if (auto* l = std::get_if<std::vector<float>>(&a)) return list(*l);
  if (auto* l = std::get_if<std::vector<std::string>>(&a)) return "[" + join(*l, ", ") + "]";
  return "";
}

/// null: the attribute has no default.
nlohmann::ordered_json default_json(const Attr& a) {
  if (auto* i = std::get_if<int64_t>(&a)) return *i;
  if (auto* f = std::get_if<float>(&a)) return nlohmann::ordered_json::parse(to_text(*f));
  if (auto* s = std::get_if<std::string>(&a)) return *s;
  if (auto* l = std::get_if<std::vector<int64_t>>(&a)) return *l;
  if (auto* l = std::get_if<std::vector<float>>(&a)) return *l;
  if (auto* l = std::get_if<std::vector<std::string>>(&a)) return *l;
  return nullptr;
}

std::string attributes(const OpRow& row) {
  std::vector<std::string> parts;
  for (const AttrSpec& a : row.attrs) {
    const std::string value = default_text(a.otherwise);
    parts.push_back("`" + a.name + (value.empty() ? "" : " = " + value) + "`");
  }
  return join(parts, ", ");
}

std::string note(const OpRow& row) {
  if (row.domain == "tc") return "inserted by passes";
  if (row.expand && !row.define) return "rewritten into simpler operators";
  if (row.expand) return "may be rewritten into simpler operators";
  if (!row.define) return "control flow: bodies are compiled, the executor runs them";
  return "";
}

std::string lower(std::string_view s) {
  std::string r(s);
  for (char& c : r)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return r;
}

std::string domain_of(const OpRow& row) { return row.domain.empty() ? "ai.onnx" : std::string(row.domain); }

std::vector<const OpRow*> rows_with(std::string_view word, const OwnRows& own) {
  std::vector<const OpRow*> rows, all = all_ops();
  for (const auto& row : own) all.push_back(row.get());
  for (const OpRow* row : all)
    if (lower(domain_of(*row) + "." + std::string(row->name)).find(lower(word)) != std::string::npos)
      rows.push_back(row);
  return rows;
}

}  // namespace

std::string operator_table(std::string_view word, const OwnRows& own) {
  std::string text = "| domain | operator | since | attributes | notes |\n|---|---|---|---|---|\n";
  for (const OpRow* row : rows_with(word, own))
    text += "| " + domain_of(*row) + " | " + std::string(row->name) + " | " + to_text(int64_t(row->since)) + " | " +
            attributes(*row) + " | " + note(*row) + " |\n";
  return text;
}

std::string operator_json(std::string_view word, const OwnRows& own) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const OpRow* row : rows_with(word, own)) {
    nlohmann::ordered_json j;
    j["domain"] = domain_of(*row);
    j["operator"] = row->name;
    j["since"] = row->since;
    j["attributes"] = nlohmann::ordered_json::object();
    for (const AttrSpec& a : row->attrs) j["attributes"][a.name] = default_json(a.otherwise);
    j["note"] = note(*row);
    list.push_back(std::move(j));
  }
  return json_text(list, 1) + "\n";
}

bool has_operator(std::string_view word, const OwnRows& own) { return !rows_with(word, own).empty(); }

}  // namespace tc
