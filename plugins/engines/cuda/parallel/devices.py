"""Which of a machine's devices a group has. Pure."""

from __future__ import annotations

from tokenwire.core.errors import ConfigError

__all__ = ("crowd", "device_of", "is_on_gpus", "visible_devices")


def is_on_gpus(device: str, found: int) -> bool:
    """Whether the ranks run on GPUs, of which `found` are seen. `device`: as in the settings.
    Raises ConfigError for one that names a single GPU."""
    if device.startswith("cuda:"):
        raise ConfigError(
            f"engine cuda: device is {device}, and a group takes its devices by their number: set "
            "device to cuda, and CUDA_VISIBLE_DEVICES where it shall not have all"
        )
    return device == "cuda" or (device == "auto" and found > 0)


def crowd(ranks: int, cores: int) -> str:
    """What to say of so many ranks on a CPU; "": they have a core each."""
    if ranks <= cores:
        return ""
    return (
        f"no GPU is used: {ranks} ranks share {cores} cores, and wait for each other in every "
        "step: set device to cuda where they are to have a GPU each"
    )


def visible_devices(instance: int, ranks: int, found: int, visible: str | None) -> str:
    """CUDA_VISIBLE_DEVICES of a group's `ranks` on this machine, the next after those of the groups
    before it. `found`: GPUs that are seen now; `visible`: CUDA_VISIBLE_DEVICES as it is. Raises
    ConfigError where there are too few."""
    first, end = instance * ranks, (instance + 1) * ranks
    if end > found:
        raise ConfigError(
            f"engine cuda: GPUs {first} to {end - 1} are wanted, and {found} are seen: "
            "lower instance_count, take a smaller parallel_strategy, or set device to cpu"
        )
    names = [str(index) for index in range(found)]
    if visible is not None:
        names = [name.strip() for name in visible.split(",")]
    return ",".join(names[first:end])


def device_of(device: str, local_rank: int) -> str:
    """The device of one rank, among those that its group sees."""
    return f"cuda:{local_rank}" if device == "cuda" else device
