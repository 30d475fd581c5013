"""The application: memory, a door, and the routes; and how it is served."""

from __future__ import annotations

import ipaddress
import logging
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from everlong import __version__
from everlong.config import Settings, load_settings, new_id
from everlong.errors import ConfigError
from everlong.policy import Rules
from everlong.server import compat, problems
from everlong.server.auth import ByKey, ByToken, Credentials
from everlong.server.door import Door, Rate
from everlong.server.keys import Keys
from everlong.server.routes import ROUTERS
from everlong.server.wire import Wire

if TYPE_CHECKING:
    from everlong.memory import Memory

__all__ = ["check_open", "create_app", "credentials", "serve"]

_PROBLEM: Final = {"model": problems.Problem, "content": {"application/problem+json": {}}}
_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    "4XX": {**_PROBLEM, "description": "What is asked cannot be done; the problem says why"},
    "422": {**_PROBLEM, "description": "The request has the wrong shape"},
    "5XX": {**_PROBLEM, "description": "The server, its store or its model failed"},
}


def create_app(memory: Memory, settings: Settings | None = None, *, auth: bool = True) -> FastAPI:
    """The server's application over an open memory, which stays yours to close.

    Args:
        memory: what is served.
        settings: ``cors_origins``, ``rate_limit``, ``max_body_bytes``, ``jwt_…`` and ``rules`` are looked at; default:
            those of the environment and of ``everlong.toml``.
        auth: ``False`` lets everyone in as an operator: for one's own machine only, see :func:`check_open`.

    Raises:
        ConfigError: a setting is wrong.
    """
    settings = settings or load_settings()
    app = FastAPI(
        title="everlong",
        version=__version__,
        summary="Long-term memory for LLM agents",
        docs_url=None,  # the pages would fetch scripts from elsewhere
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        responses=_ERRORS,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: f"{route.tags[0]}_{route.name}" if route.tags else route.name,
    )
    app.state.door = Door(
        memory=memory,
        credentials=credentials(memory, settings) if auth else (),
        rate=Rate(settings.rate_limit),
        rules=Rules(settings.rules),
    )
    for router in ROUTERS:
        app.include_router(router, prefix="/v1")
    app.include_router(compat.router(), prefix="/api")
    problems.install(app)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["ETag", "X-Request-ID", "Retry-After"],
        )
    app.add_middleware(Wire, new_id=new_id, max_bytes=settings.max_body_bytes)
    return app


def credentials(memory: Memory, settings: Settings) -> tuple[Credentials, ...]:
    """What opens this memory: the keys that it keeps, and the tokens that the settings ``jwt_…`` tell of."""
    by_key = ByKey(Keys(memory.parts.store, clock=memory.parts.clock))
    if not settings.jwt_keys:
        return (by_key,)
    by_token = ByToken(
        settings.jwt_keys,
        audience=settings.jwt_audience,
        issuer=settings.jwt_issuer,
        claims=settings.jwt_claims,
    )
    return (by_key, by_token)


def check_open(host: str, *, auth: bool) -> None:
    """Refuses to let everyone in from elsewhere.

    Raises:
        ConfigError: there are no credentials and ``host`` is not this machine's own.
    """
    if auth:
        return
    try:
        own = ipaddress.ip_address(host).is_loopback
    except ValueError:
        own = host == "localhost"
    if not own:
        raise ConfigError(f"without credentials a server listens on this machine only (127.0.0.1), not on {host}")


def serve(memory: Memory, settings: Settings, *, host: str, port: int, auth: bool = True) -> None:
    """Serves until stopped by SIGTERM or Ctrl-C; requests that run are finished first, for 30 seconds at most.

    Raises:
        ConfigError: a setting is wrong, or everyone would be let in from elsewhere.
    """
    import uvicorn

    check_open(host, auth=auth)
    logging.getLogger("everlong.server").setLevel(logging.INFO)
    uvicorn.run(
        create_app(memory, settings, auth=auth),
        host=host,
        port=port,
        access_log=False,  # it would hold addresses with questions in them; Wire logs the routes
        server_header=False,
        timeout_graceful_shutdown=30,
        log_level="info",
    )
