"""A configuration made real: store, keys, scripts, and each model with its engine. Knows no HTTP.

Small files are read at start, and what is wrong with them stops it; engines load behind it, so that
the server answers (503, with the reason) while they do.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from secrets import token_bytes
from typing import Any, Self, final

from tokenwire.core.answers import AnswerCache
from tokenwire.core.config import Config, ModelConfig
from tokenwire.core.dispatch import Dispatcher
from tokenwire.core.errors import ConfigError, TokenwireError
from tokenwire.core.factory import Services
from tokenwire.core.fingerprint import differences
from tokenwire.core.flow import Flow
from tokenwire.core.host import Host
from tokenwire.core.model_parts import ModelParts, assemble
from tokenwire.core.ports.engine import Engine
from tokenwire.core.ports.observer import Observer
from tokenwire.core.ports.store import Store
from tokenwire.core.recent import RecentPrompt, RecentPrompts
from tokenwire.core.run import RunSettings
from tokenwire.core.scripts import ScriptBook
from tokenwire.core.secrets import NO_KEYS, SecretWatch, keyring
from tokenwire.core.served import AbsentModel, ServedModel
from tokenwire.core.shelf import Shelf
from tokenwire.core.signing import Keyring
from tokenwire.core.token_history import TokenHistory
from tokenwire.core.tokens import EngineStatus

__all__ = ("Deployment",)

log = logging.getLogger("tokenwire.deployment")

KEYS_LOOK_S = 10.0
"""How often key files are looked at."""
BACKGROUND_ENDS_S = 5.0
"""What answers in the background get to be stored, once their engines have stopped."""
NO_SETTINGS: Mapping[str, object] = {}


@final
class Deployment:
    """`await Deployment.start(...)`, serve `flow`, then `drain`."""

    def __init__(self, config: Config, host: Host, services: Services, store: Store) -> None:
        self.config = config
        self.host = host
        self.store = store
        self.scripts = services.scripts
        self.flow: Flow
        self._services = services
        self._recent = RecentPrompts() if config.server.debug else None
        self._answers = (
            AnswerCache(store, config.cache.answers_ttl) if config.cache.answers else None
        )
        self._history = (
            TokenHistory(store, config.cache.history_ttl) if config.cache.history else None
        )
        self._models: dict[str, ServedModel] = {}
        self._served: list[ServedModel] = []  # Each once; `_models` has aliases too.
        self._absent: list[AbsentModel] = []
        self._loading: list[asyncio.Task[None]] = []
        # Why: two loads at once need the memory of both, and import libraries in two threads.
        self._one_at_a_time = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._draining = False

    @classmethod
    async def start(
        cls,
        config: Config,
        host: Host,
        *,
        keys: Keyring | None = None,
        store: Store | None = None,
        observers: Sequence[Observer] = (),
    ) -> Self:
        """Raises ConfigError or PluginError. `keys` and `store`: shared with other workers."""
        watches = [SecretWatch(secret, os.environ) for secret in config.server.keys]
        keys = keys or _keys(watches)
        bare = Services(keys)
        if store is None:
            store = host.stores.build(config.cache.type, config.cache.settings, bare, "cache")
        mocks = any(model.engine.plugin == "mock" for model in config.models)
        services = Services(keys, store=store, scripts=ScriptBook(store) if mocks else None)
        self = cls(config, host, services, store)
        try:
            self.flow = await self._build(observers)
        except BaseException:
            await store.close()
            raise
        if watches:
            self._tasks.append(asyncio.ensure_future(_rotate(keys, watches)))
        return self

    async def _build(self, observers: Sequence[Observer]) -> Flow:
        server = self.config.server
        codecs = self._all("codec")
        for config, parts in [self._assemble(model) for model in self.config.models]:
            if parts is not None:
                self._loading.append(asyncio.ensure_future(self._load(config, parts)))
        return Flow(
            codecs=codecs,
            models=self._models,
            absent=self._absent,
            guards=self._all("guard"),
            observers=[*self._all("observer"), *observers],
            scripts=self.scripts,
            recent=self._recent,
            answers=self._answers,
            settings=RunSettings(
                keepalive_s=server.keepalive,
                timeout_s=server.request_timeout,
                flush_s=server.flush_interval,
            ),
            keys=self._services.keys,
            media=server.media,
            shelf=Shelf(self.store, self.config.cache.responses_ttl),
            max_background=server.max_background,
        )

    def _all(self, kind: str) -> list[Any]:
        """Every plugin of a kind, with its settings from `plugins:`."""
        registry = self.host.registry(kind)
        return [
            registry.build(
                name,
                self.config.plugins.get(name, NO_SETTINGS),
                self._services,
                f"plugins.{name}",
            )
            for name in registry
        ]

    def _assemble(self, config: ModelConfig) -> tuple[ModelConfig, ModelParts | None]:
        """Everything but the engine; all models' mistakes are found before any engine loads."""
        if config.engine.plugin not in self.host.engines:
            problem = f"no engine plugin {config.engine.plugin!r} is installed"
            log.warning("model %s: %s", config.name, problem)
            self._absent += [AbsentModel(name, problem) for name in (config.name, *config.aliases)]
            return config, None
        parts = assemble(config, self.host, self._services)
        log.info("model %s: dialect %s (%s)", config.name, parts.dialect, parts.why)
        if parts.misfit:
            log.warning("model %s: %s", config.name, parts.misfit)
        for name in (config.name, *config.aliases):
            if self._models.setdefault(name, parts.model) is not parts.model:
                raise ConfigError(f"models: two models are called {name!r}")
        if self._history is not None:
            parts.model.remember(self._history)
        self._served.append(parts.model)
        return config, parts

    async def _load(self, config: ModelConfig, parts: ModelParts) -> None:
        """In a thread: weights take seconds to minutes."""
        model = parts.model
        try:
            async with self._one_at_a_time:
                engine = await asyncio.to_thread(
                    self.host.engines.build,
                    config.engine.plugin,
                    config.engine.settings,
                    parts.services,
                    f"models.{config.name}.engine",
                )
            self._join(model, engine, config)
        except TokenwireError as error:
            model.problem = str(error)
            log.error("model %s cannot be served: %s", config.name, error)
        except Exception:
            model.problem = "its engine failed to load; see the log"
            log.exception("model %s cannot be served", config.name)

    def _join(self, model: ServedModel, engine: Engine, config: ModelConfig) -> None:
        """Refuses an engine that means other things by the same ids."""
        ours = model.renderer.tokenizer.vocabulary.fingerprints
        theirs = engine.status().card.fingerprints
        for difference in differences(ours, theirs):
            raise ConfigError(
                f"its engine has another {difference.name}: sha256 {difference.theirs[:16]}...,"
                f" the tokenizer's is {difference.ours[:16]}...; give both the same files"
            )
        if "vocabulary" not in theirs and not config.trust_tokenizer:
            raise ConfigError(
                "its engine reports no fingerprint of its vocabulary, so its ids may mean other"
                " tokens; set trust_tokenizer: true if you know that they do not"
            )
        dispatcher = Dispatcher(engine, model.name)
        dispatcher.start()
        model.dispatcher = dispatcher
        log.info("model %s is ready", model.name)

    # --- while it serves -------------------------------------------------------------------------

    def models(self) -> tuple[str, ...]:
        """Names, without aliases."""
        return tuple(model.name for model in self._served)

    def ready(self) -> tuple[bool, str]:
        """Whether every model can answer now; if not, why."""
        if self._draining:
            return False, "the server is shutting down"
        problems = [f"{absent.name or 'default'}: {absent.problem}" for absent in self._absent]
        for model in self._served:
            if model.dispatcher is None:
                problems.append(f"{model.name}: {model.problem}")
            elif not (status := model.dispatcher.status()).ready:
                problems.append(f"{model.name}: {status.reason}")
        return not problems, "; ".join(problems)

    async def loaded(self) -> None:
        """Returns when every engine has loaded or failed to."""
        await asyncio.gather(*self._loading)

    def engine_statuses(self) -> dict[str, EngineStatus]:
        """Of loaded engines, by model."""
        return {
            model.name: model.dispatcher.status()
            for model in self._served
            if model.dispatcher is not None
        }

    def recent_prompt(self, request_id: str) -> RecentPrompt | None:
        return self._recent.get(request_id) if self._recent is not None else None

    def begin_drain(self) -> None:
        """From now on it is not ready; what runs goes on."""
        self._draining = True

    async def drain(self, timeout_s: float) -> None:
        """Let running calls end, then stop engines and let go of the store."""
        self.begin_drain()
        tasks = (*self._loading, *self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        dispatchers = [model.dispatcher for model in self._served if model.dispatcher is not None]
        await asyncio.gather(*(dispatcher.drain(timeout_s) for dispatcher in dispatchers))
        await self.flow.close(BACKGROUND_ENDS_S)
        if self._answers is not None:
            await self._answers.close()
        if self._history is not None:
            await self._history.close()
        await self.store.close()


def _keys(watches: Sequence[SecretWatch]) -> Keyring:
    if watches:
        return keyring(watches)
    log.warning(NO_KEYS)
    return Keyring([token_bytes(32)])


async def _rotate(keys: Keyring, watches: Sequence[SecretWatch]) -> None:
    """Take up keys whose files have changed; a file that cannot be read changes nothing."""
    while True:
        await asyncio.sleep(KEYS_LOOK_S)
        try:
            if any([watch.refresh() for watch in watches]):
                keys.adopt(keyring(watches))
                log.info("server.keys: took up changed keys")
        except ConfigError as error:
            log.warning("server.keys: keeping the old ones: %s", error)
