#!/usr/bin/env bash
# Proves the engine on a GPU and measures it: benchmarks/gpu/check.sh [--output FILE] [check.py's options]
#
# Needs a Python with torch >= 2.11, triton >= 3.6, numpy, safetensors and tokenizers. msgspec and
# pluggy are installed from the folder WHEELS where they are missing (nothing is downloaded then).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-python3}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/tokenwire"
for part in core plugins kernels; do ln -s "$root/$part" "$tree/tokenwire/$part"; done
if ! "$python" -c 'import msgspec, pluggy' 2>/dev/null; then
    "$python" -m pip install --quiet --target "$tree" ${WHEELS:+--no-index --find-links "$WHEELS"} \
        msgspec pluggy
fi
# Why the script's folder too: the process that parts are forked from has no script of its own.
export PYTHONPATH="$tree:$root/benchmarks/gpu${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1
timeout "${LIMIT:-480}" "$python" "$root/benchmarks/gpu/check.py" "$@"
