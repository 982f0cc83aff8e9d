from collections.abc import Iterable, Iterator

import msgspec
import tokenwire_ndjson

from tokenwire.core import events as e
from tokenwire.core.call import Call
from tokenwire.core.dialogue import Dialogue, Text, Turn
from tokenwire.core.errors import ErrorKind
from tokenwire.core.testing.codec_kit import run_codec_kit

HELLO = Call("m", Dialogue((Turn("user", (Text("hi"),)),)))
LINE = e.Started | e.PartStart | e.PartDelta | e.PartEnd | e.Finished | e.Usage


def read(call: Call, chunks: Iterable[bytes]) -> Iterator[e.Event]:
    for line in b"".join(chunks).split(b"\n")[:-1]:
        said = msgspec.json.decode(line)
        failed = said["type"] == "failed"
        yield (
            e.Failed(ErrorKind.INTERNAL, said["message"]) if failed else msgspec.convert(said, LINE)
        )


def test_conforms() -> None:
    run_codec_kit(tokenwire_ndjson.Ndjson(), {b'{"model":"m","say":"hi"}': HELLO}, read)
