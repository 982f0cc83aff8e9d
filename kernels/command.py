"""`tokenwire kernels list|check|build|bench`: parses, runs one of them, prints lines.

Exit codes: 0: all is well; 1: a kernel fails a law or a gate; 2: wrong usage or a package that
lacks. Why the imports inside: Triton decides at import whether it interprets.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

__all__ = ("main",)

ARCHITECTURES = ("sm_80", "sm_90a", "sm_100a")


def main(arguments: Sequence[str]) -> int:
    """Runs `tokenwire kernels ARGUMENTS` -> its exit code."""
    options = _parser().parse_args(_spelled(arguments))
    if find_spec("torch") is None:
        return _complain(
            "torch is not installed: pip install 'tokenwire[cpu]', or with a GPU 'tokenwire[cuda]'"
        )
    try:
        run = {"list": _list, "check": _check, "build": _build, "bench": _bench}[options.command]
        return run(options)
    except ValueError as error:
        return _complain(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tokenwire kernels", description="The engine's operations and their implementations."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    listed = commands.add_parser("list", help="every op and implementation, and why one is left")
    listed.add_argument("--arch", help="as for a GPU of this architecture: sm_90a")
    listed.add_argument("--dtype", default="bfloat16", help="of activations (%(default)s)")
    check = commands.add_parser("check", help="compare every implementation with the reference")
    check.add_argument("ops", nargs="*", help="only these ops")
    check.add_argument("--quiet", action="store_true", help="print failures alone")
    build = commands.add_parser("build", help="compile the Triton kernels; needs no GPU")
    build.add_argument("--target", choices=("kernel_lib",), default="kernel_lib")
    build.add_argument("--arch", action="append", help=f"default: {', '.join(ARCHITECTURES)}")
    build.add_argument("--opt-level", type=int, choices=(0, 3), default=3, help="of ptxas")
    build.add_argument("--output", type=Path, help="folder of the artefact, for one --arch")
    build.add_argument("ops", nargs="*", help="folders of ops; default: all")
    bench = commands.add_parser("bench", help="measured time over the roofline")
    bench.add_argument("ops", nargs="*", help="only these ops")
    bench.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    bench.add_argument("--json", action="store_true", help="one object a line")
    return parser


def _spelled(arguments: Sequence[str]) -> list[str]:
    """--opt_level=3 is --opt-level=3."""
    return [
        "--" + name.replace("_", "-") + equals + value if argument.startswith("--") else argument
        for argument in arguments
        for name, equals, value in [argument.removeprefix("--").partition("=")]
    ]


def _list(options: argparse.Namespace) -> int:
    from tokenwire.kernels.listing import listed, signature_of

    signature = signature_of(options.arch, options.dtype)
    for line in listed(signature):
        print(line)
    return 0


def _check(options: argparse.Namespace) -> int:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
        print("no GPU: Triton's kernels run in its interpreter")
    from tokenwire.kernels.grid import reports

    failed = ran = 0
    for report in reports(options.ops, device=device):
        ran += not report.skipped
        failed += bool(report.faults)
        if report.faults or not (options.quiet or report.skipped):
            print(report.line())
    print(f"{ran} cases, {failed} failed")
    return 1 if failed else 0


def _build(options: argparse.Namespace) -> int:
    if find_spec("triton") is None:
        return _complain("triton is not installed: pip install 'tokenwire[cuda]'")
    from tokenwire.kernels.aot.run import build_artefact

    names = options.arch or ARCHITECTURES
    if options.output and len(names) > 1:
        raise ValueError("--output takes one --arch: each architecture has a folder of its own")
    codes = [
        build_artefact(
            name, opt_level=options.opt_level, output=options.output, folders=options.ops
        )
        for name in names
    ]
    return max(codes)


def _bench(options: argparse.Namespace) -> int:
    import torch

    if options.device == "cuda" and not torch.cuda.is_available():
        return _complain("no GPU is present; --device cpu measures the references on the CPU")
    from tokenwire.kernels.bench import measured

    for measurement in measured(options.ops, device=options.device):
        print(measurement.as_json() if options.json else measurement.line())
    return 0


def _complain(text: str) -> int:
    print(f"tokenwire kernels: {text}", file=sys.stderr)
    return 2
