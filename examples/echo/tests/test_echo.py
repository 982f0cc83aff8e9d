import tokenwire_echo

from tokenwire.core.host import lone_services
from tokenwire.core.testing.engine_kit import run_engine_kit


def test_conforms() -> None:
    settings = tokenwire_echo.EchoSettings()
    run_engine_kit(lambda: tokenwire_echo.build(settings, lone_services()), jobs=100)
