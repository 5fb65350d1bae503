#include "cli/tune/time_model.h"

#include <algorithm>
#include <cmath>

namespace tc {
namespace {

constexpr double kLambda = 0.3;

/// Plans of one kind have the same numbers, as many features.
std::string kind_of(const PlanPoint& p) { return p.family() + " " + std::to_string(p.knobs.size()); }

std::vector<double> logarithms(const PlanPoint& p) {
  std::vector<double> x;
  for (const Knob& k : p.knobs) x.push_back(std::log2(1.0 + double(k.value)));
  return x;
}

/// The logarithm of each number, its square, and the products of neighbours: rows and columns of a tile count together.
std::vector<double> features(const PlanPoint& p) {
  const std::vector<double> x = logarithms(p);
  std::vector<double> f = x;
  for (const double v : x) f.push_back(v * v);
  for (size_t i = 0; i + 1 < x.size(); i++) f.push_back(x[i] * x[i + 1]);
  return f;
}

}  // namespace

std::vector<double> ridge(const std::vector<std::vector<double>>& rows, const std::vector<double>& y, double lambda) {
  const size_t n = rows.empty() ? 0 : rows[0].size();
  std::vector<std::vector<double>> a(n, std::vector<double>(n + 1));
  for (size_t r = 0; r < rows.size(); r++)
    for (size_t i = 0; i < n; i++) {
      for (size_t j = 0; j < n; j++) a[i][j] += rows[r][i] * rows[r][j];
      a[i][n] += rows[r][i] * y[r];
    }
  for (size_t i = 0; i + 1 < n; i++) a[i][i] += lambda;
  // The matrix is positive definite but for a column of nothing: Gauss without pivots.
  for (size_t i = 0; i < n; i++) {
    if (a[i][i] < 1e-12) a[i][i] = 1e-12;
    for (size_t k = i + 1; k < n; k++) {
      const double factor = a[k][i] / a[i][i];
      for (size_t j = i; j <= n; j++) a[k][j] -= factor * a[i][j];
    }
  }
  std::vector<double> x(n);
  for (size_t i = n; i-- > 0;) {
    double sum = a[i][n];
    for (size_t j = i + 1; j < n; j++) sum -= a[i][j] * x[j];
    x[i] = sum / a[i][i];
  }
  return x;
}

double TimeModel::prior(const PlanPoint& p) const {
  if (p.family() != model_.family()) return 0.05;  // another template: it was not the model's choice
  if (p.cost > 0 && model_.cost > 0) return std::log(p.cost / model_.cost);
  const std::vector<double> a = logarithms(p), b = logarithms(model_);
  double distance = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); i++) distance += std::abs(a[i] - b[i]);
  return 0.02 * distance;
}

void TimeModel::fit(const std::vector<std::pair<PlanPoint, double>>& measured) {
  std::map<std::string, std::vector<size_t>> members;
  for (size_t i = 0; i < measured.size(); i++) members[kind_of(measured[i].first)].push_back(i);
  families_.clear();
  for (const auto& [name, list] : members) {
    Family f;
    std::vector<std::vector<double>> rows;
    std::vector<double> y;
    const auto costs = [&](size_t i) { return measured[i].first.cost > 0; };
    f.has_cost = std::all_of(list.begin(), list.end(), costs);
    for (const size_t i : list) {
      rows.push_back(features(measured[i].first));
      y.push_back(std::log(measured[i].second) - (f.has_cost ? std::log(measured[i].first.cost) : 0));
    }
    const size_t n = rows[0].size();
    f.centre.assign(n, 0);
    f.scale.assign(n, 0);
    for (size_t j = 0; j < n; j++) {
      for (const auto& r : rows) f.centre[j] += r[j] / double(rows.size());
      for (const auto& r : rows) f.scale[j] += (r[j] - f.centre[j]) * (r[j] - f.centre[j]) / double(rows.size());
      f.scale[j] = f.scale[j] > 1e-9 ? 1 / std::sqrt(f.scale[j]) : 0;
      for (auto& r : rows) r[j] = (r[j] - f.centre[j]) * f.scale[j];
    }
    for (auto& r : rows) r.push_back(1);
    f.weights = ridge(rows, y, kLambda);
    families_.emplace(name, std::move(f));
  }
}

double TimeModel::predict(const PlanPoint& p) const {
  const auto it = families_.find(kind_of(p));
  const std::vector<double> x = features(p);
  if (it == families_.end() || it->second.centre.size() != x.size()) return std::exp(prior(p));
  const Family& f = it->second;
  double y = f.weights.back() + (f.has_cost && p.cost > 0 ? std::log(p.cost) : 0);
  for (size_t j = 0; j < x.size(); j++)
    // Beyond what was measured a parabola says anything: as far as two deviations it is believed.
    y += f.weights[j] * std::clamp((x[j] - f.centre[j]) * f.scale[j], -2.0, 2.0);
  return std::exp(y);
}

}  // namespace tc
