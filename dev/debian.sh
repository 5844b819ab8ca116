# Functions for tests that use programs of Debian which need not be installed. This file is sourced.

command -v apt-get dpkg-deb >/dev/null || {
  echo "these programs come as Debian's packages, and this system has no apt-get" >&2
  exit 2
}

missing_packages() { # packages: prints those of them and of their dependencies that are not installed
  apt-get install -s --no-install-recommends "$@" | awk '/^Inst/ {print $2}'
}

fetch() { # folder, packages: unpacks them into the folder, once; fails if they are not available
  local folder=$1
  shift
  [[ -e $folder/complete ]] && return
  rm -rf "$folder" "$folder.debs"
  mkdir -p "$folder" "$folder.debs"
  (cd "$folder.debs" && apt-get download -q "$@" >/dev/null) || return 1
  for deb in "$folder.debs"/*.deb; do dpkg-deb -x "$deb" "$folder"; done
  rm -rf "$folder.debs"
  touch "$folder/complete"
}
