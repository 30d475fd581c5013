"""Whose turn it is, as LangGraph's runtime knows it: from the login first, never from a model or a tool's argument."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import InvalidScope
from everlong.records import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["scope_of"]

_USER: Final = ("user_id", "user")
_LOGIN: Final = "langgraph_auth_user_id"


def scope_of(runtime: Any, *, org: str = "", agent: str = "") -> Scope:
    """The scope of the present run: its user, and its thread as the session.

    The user is looked for in this order: the login that LangGraph's server verified (``server_info.user.identity``,
    or ``langgraph_auth_user_id`` in the configuration), the runtime context (``context.user_id`` or ``.user``, an
    attribute or a key), the configuration (``configurable.user_id``). A context whose ``scope`` is a
    :class:`~everlong.records.Scope` names everything at once. The session is the thread.

    Args:
        runtime: what LangGraph gives to a node, a middleware or a tool.
        org: the organisation, if the run does not name one (``context.org``).
        agent: the agent, if the memory is one agent's own.

    Raises:
        InvalidScope: no user is named, or the context names another one than the login.
    """
    context = getattr(runtime, "context", None)
    configurable = _configurable(runtime)
    given = _read(context, "scope")
    named = given if isinstance(given, Scope) else Scope(org=str(_read(context, "org") or org), agent=agent)
    claimed = named.user or next(_texts(*(_read(context, key) for key in _USER)), "")
    login = _login(runtime, configurable)
    if login and claimed and login != claimed:
        msg = "the run's context names another user than its login; memory is kept closed"
        raise InvalidScope(msg)
    user = login or claimed or next(_texts(configurable.get("user_id")), "")
    if not user:
        msg = (
            "the run names no user: pass context with user_id, or configurable user_id, or identify= to the middleware"
        )
        raise InvalidScope(msg)
    return Scope(org=named.org, agent=named.agent, user=user, session=named.session or _thread(runtime, configurable))


def _login(runtime: Any, configurable: Mapping[str, Any]) -> str:
    user = getattr(getattr(runtime, "server_info", None), "user", None)
    return next(_texts(_read(user, "identity"), configurable.get(_LOGIN)), "")


def _thread(runtime: Any, configurable: Mapping[str, Any]) -> str:
    info = getattr(runtime, "execution_info", None)
    return next(_texts(getattr(info, "thread_id", None), configurable.get("thread_id")), "")


def _configurable(runtime: Any) -> Mapping[str, Any]:
    config = getattr(runtime, "config", None)
    if config is None:
        from langgraph.config import get_config

        try:
            config = get_config()
        except RuntimeError:  # outside of a run there is none
            return {}
    found = config.get("configurable") if isinstance(config, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _read(source: object, name: str) -> Any:
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)


def _texts(*values: object) -> Iterator[str]:
    return (value if isinstance(value, str) else str(value) for value in values if value not in (None, ""))
