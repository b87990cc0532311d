# Sourced by the other scripts: makes .venv, once per pyproject.toml. EXTRAS names what is installed beside the package itself;
# the default is everything that tests and developers need, which serves every script.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "Python 3.10 or newer is needed; got: $("$python" --version 2>&1 || true). Set PYTHON=/path/to/python3" >&2
    exit 2
fi
extras=${EXTRAS:-dev}
stamp=.venv/installed-$(cksum < pyproject.toml | tr ' ' -)
if [ ! -e "$stamp-$extras" ] && [ ! -e "$stamp-dev" ]; then
    echo "Setting up .venv (a minute or two, once) ..." >&2
    "$python" -m venv .venv || { echo "the venv module is missing: on Debian, apt-get install python3-venv" >&2; exit 2; }
    .venv/bin/python -m pip install -qq --disable-pip-version-check --upgrade pip
    .venv/bin/python -m pip install -qq --disable-pip-version-check --no-compile -e ".[$extras]"
    rm -rf .venv/lib/python*/site-packages/cmeel.prefix/include  # C++ headers of Pinocchio's wheels, 200 MB
    rm -f .venv/installed-*
    touch "$stamp-$extras"
fi
export PATH="$PWD/.venv/bin:$PATH"
