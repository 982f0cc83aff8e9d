"""The atomic ops as Lua, one key each; time is the server's. Knows no connection.

The same rules as memory/ops.py, value for value. Numbers come as decimal strings; "" stands for
"no TTL" and, in compare_and_set, a flag says what is absent. Each script answers a string, because
Redis cuts a Lua number down to an integer. A TTL is whole milliseconds, rounded up; one of zero or
less means that the key is gone at once.
"""

from __future__ import annotations

import math
from hashlib import sha1
from typing import assert_never, final

from msgspec import Struct

from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import AtomicOp, CompareAndSet, Incr, Lease, Take, name_bytes

__all__ = ("Script", "arguments", "milliseconds", "script_of")

LONGEST_MS = 2**52
LARGEST = 2**53 - 1


@final
class Script(Struct, frozen=True):
    """A script's source and the name that the server knows it by once loaded."""

    source: str
    sha: str


def _script(body: str) -> Script:
    source = PUT + body
    return Script(source, sha1(source.encode()).hexdigest())


PUT = """
local function put(key, value, ttl)
  if ttl == '' then redis.call('SET', key, value)
  elseif tonumber(ttl) <= 0 then redis.call('DEL', key)
  else redis.call('SET', key, value, 'PX', ttl) end
end
"""

INCR = _script("""
local held = redis.call('GET', KEYS[1])
local by = tonumber(ARGV[1])
if held and not (held == '0' or (string.match(held, '^-?[1-9]%d*$') and #held <= 17)) then
  return redis.error_reply('ERR incr: the key holds no integer')
end
local before = held and tonumber(held) or 0
local total = before + by
if math.max(math.abs(before), math.abs(total)) >= 9007199254740992 then
  return redis.error_reply('ERR incr: counts stay below 2^53')
end
local text = string.format('%.0f', total)
if text == '-0' then text = '0' end
if held then redis.call('SET', KEYS[1], text, 'KEEPTTL') else put(KEYS[1], text, ARGV[2]) end
return text
""")

TAKE = _script("""
local tokens, capacity, refill = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1000000
local held = redis.call('GET', KEYS[1])
local level, since = capacity, now
if held then
  local a, b = string.match(held, '^bucket (%S+) (%S+)$')
  level, since = tonumber(a), tonumber(b)
  if not level or not since then
    return redis.error_reply('ERR take: the key holds no bucket')
  end
end
level = math.min(capacity, level + math.max(0, now - since) * refill)
local wait = '0'
if tokens <= level then level = level - tokens
elseif tokens > capacity or refill == 0 then wait = 'inf'
else wait = string.format('%.17g', (tokens - level) / refill) end
local missing, ttl = capacity - level, ''
if missing <= 0 then ttl = '0'
elseif refill > 0 and missing / refill < 4e12 then
  ttl = string.format('%.0f', math.ceil(missing / refill * 1000))
end
put(KEYS[1], string.format('bucket %.17g %.17g', level, math.max(now, since)), ttl)
return wait
""")

LEASE = _script("""
local held = redis.call('GET', KEYS[1])
local mine = held == ARGV[1]
if ARGV[2] ~= '' and tonumber(ARGV[2]) <= 0 then
  if mine then redis.call('DEL', KEYS[1]) end
  return mine and '1' or '0'
end
if held and not mine then return '0' end
put(KEYS[1], ARGV[1], ARGV[2])
return '1'
""")

COMPARE_AND_SET = _script("""
local held = redis.call('GET', KEYS[1])
if ARGV[1] == '0' then
  if held then return '0' end
elseif held ~= ARGV[2] then return '0' end
if ARGV[3] == '0' then redis.call('DEL', KEYS[1]) else put(KEYS[1], ARGV[4], ARGV[5]) end
return '1'
""")


def script_of(op: AtomicOp) -> Script:
    match op:
        case Incr():
            return INCR
        case Take():
            return TAKE
        case Lease():
            return LEASE
        case CompareAndSet():
            return COMPARE_AND_SET
        case _:
            assert_never(op)


def arguments(op: AtomicOp) -> tuple[str | bytes, ...]:
    """ARGV of the op's script. Raises StoreError for numbers that the op cannot work with."""
    match op:
        case Incr():
            if abs(op.by) > LARGEST:
                raise StoreError(f"incr: counts stay between ±(2**53 - 1), got {op.by}")
            return str(op.by), _ttl(op.ttl_s)
        case Take():
            numbers = (op.tokens, op.capacity, op.refill_per_s)
            if not (op.tokens >= 0 and all(0 <= number < math.inf for number in numbers[1:])):
                raise StoreError("take: tokens, capacity and refill_per_s are finite, not negative")
            # Why: Lua 5.1 reads "inf" only on some machines; more than any capacity says the same.
            return tuple(f"{min(number, 1.7e308):.17g}" for number in numbers)
        case Lease():
            return name_bytes(op.holder), _ttl(op.ttl_s)
        case CompareAndSet():
            return (
                "0" if op.expected is None else "1",
                op.expected or b"",
                "0" if op.value is None else "1",
                op.value or b"",
                _ttl(op.ttl_s),
            )
        case _:
            assert_never(op)


def milliseconds(ttl_s: float | None) -> int | None:
    """Rounded up, so that nothing expires early; None: for ever."""
    if ttl_s is None:
        return None
    if math.isnan(ttl_s):
        raise StoreError("ttl_s is not a number")
    if ttl_s > LONGEST_MS / 1000:
        return None
    return max(math.ceil(ttl_s * 1000), -1) if ttl_s != -math.inf else -1


def _ttl(ttl_s: float | None) -> str:
    value = milliseconds(ttl_s)
    return "" if value is None else str(value)
