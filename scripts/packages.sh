# Sourced by the scripts: installs Debian packages that are missing, and says so.

# need_packages NAME...: installs what is not installed. On systems without dpkg it only says what is needed.
need_packages() {
  if ! command -v dpkg-query > /dev/null; then
    echo "packages: no Debian here; needed: $*"
    return 0
  fi
  local installed missing=() name
  # Architecture-qualified and unqualified names both appear without their architecture. A name that dpkg has never heard
  # of makes it fail, which is no reason to stop.
  installed=" $({ dpkg-query -W -f='${db:Status-Abbrev}${Package}\n' "$@" 2> /dev/null || true; } | sed -n 's/^ii *//p' | tr '\n' ' ') "
  for name in "$@"; do
    [[ $installed == *" $name "* ]] || missing+=("$name")
  done
  if ((${#missing[@]} == 0)); then return 0; fi
  echo "packages: installing ${missing[*]}"
  local as_root=()
  if (($(id -u) != 0)); then
    command -v sudo > /dev/null || { echo "packages: not root and no sudo; install them by hand" >&2; return 1; }
    as_root=(sudo)
  fi
  local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}")
  # Old package lists are the usual reason for a failure: fetch new ones and try once more.
  "${install[@]}" > /dev/null 2>&1 && return 0
  "${as_root[@]}" apt-get update -qq
  "${install[@]}" > /dev/null
}
