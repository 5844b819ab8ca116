#!/usr/bin/env bash
# Names each missing prerequisite with the Debian package that contains it. The exit status is 1 if one is missing.
set -u

missing=0
lacks() { # prerequisite, Debian package
  echo "missing: $1  (Debian: apt-get install $2)" >&2
  missing=1
}

python=${PYTHON3:-python3}
if ! command -v "$python" >/dev/null; then
  lacks "Python 3.10 or newer" python3
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  lacks "Python 3.10 or newer, found $("$python" --version 2>&1); PYTHON3=... names another one" python3
elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
  lacks "Python's venv module" python3-venv
fi

java_bin=${JAVA_HOME:+$JAVA_HOME/bin/}
if ! command -v "${java_bin}javac" >/dev/null || ! command -v "${java_bin}java" >/dev/null; then
  lacks "a Java 17 development kit" openjdk-17-jdk-headless
else
  version=$("${java_bin}javac" -version 2>&1 | sed -E 's/[^0-9]*([0-9]+).*/\1/')
  case $version in
    17 | 21) ;;
    *) lacks "Java 17 (or 21), found Java $version; JAVA_HOME=... names another one" openjdk-17-jdk-headless ;;
  esac
fi

if ! command -v sbt >/dev/null && ! command -v mvn >/dev/null; then
  lacks "sbt or Maven" maven
fi

exit $missing
