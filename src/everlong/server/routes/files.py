"""Memory files and skills."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from everlong.errors import InvalidInput
from everlong.server.door import Expected, Here, Limit, answer, expected
from everlong.server.shapes import FileEdit, FileText, FileVersion, SkillText

__all__ = ["router"]

router = APIRouter(tags=["files"])
Path = Annotated[str, Query(description="such as /memories/AGENTS.md")]
Version = Annotated[int, Query(ge=1, le=2**53)]
MaybeVersion = Annotated[int | None, Query(ge=1, le=2**53)]


@router.get("/files")
def listing(memory: Here, prefix: str = "/", glob: str | None = None) -> Response:
    """Files visible from here, by path; with ``glob`` those that it names."""
    found = memory.files.list(prefix) if glob is None else memory.files.glob(glob, prefix=prefix)
    return answer({"items": found})


@router.get("/files/content")
def read(memory: Here, path: Path, request: Request, version: MaybeVersion = None) -> Response:
    """One file, its bytes in base64; or one of its earlier versions."""
    return answer(memory.files.read(path, version=version), request=request)


@router.put("/files/content")
def write(memory: Here, file: FileText, tag: Expected) -> Response:
    """Writes a file over the version that was read, or a new one."""
    version = expected(tag, file.expected_version)
    return answer(
        memory.files.write(file.path, _content(file), expected=version or 0, read_only=file.read_only), status=200
    )


def _content(file: FileText) -> str | bytes:
    if (file.text is None) == (file.base64 is None):
        raise InvalidInput("a file's content is its text or its base64, one of the two")
    if file.text is not None:
        return file.text
    try:
        return base64.b64decode(file.base64 or "", validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("base64 is not base64") from None


@router.delete("/files/content", status_code=204)
def delete(memory: Here, path: Path, tag: Expected, expected_version: MaybeVersion = None) -> Response:
    """Removes a file; its versions stay in history until they are erased."""
    memory.files.delete(path, expected=expected(tag, expected_version))
    return Response(status_code=204)


@router.post("/files/edit")
def edit(memory: Here, change: FileEdit, tag: Expected) -> Response:
    """Replaces words of a text file; all else stays to the byte."""
    version = expected(tag, change.expected_version)
    done = memory.files.edit(change.path, change.old, change.new, replace_all=change.replace_all, expected=version)
    return answer(done)


@router.get("/files/lines")
def lines(
    memory: Here,
    path: Path,
    offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 2000,
) -> Response:
    """Some lines of a text file."""
    return answer(memory.files.lines(path, offset=offset, limit=limit))


@router.get("/files/grep")
def grep(
    memory: Here,
    pattern: str,
    glob: str | None = None,
    prefix: str = "/",
    *,
    regex: bool = False,
    limit: Limit = 100,
) -> Response:
    """Lines of text files that hold a pattern."""
    return answer(memory.files.grep(pattern, glob=glob, prefix=prefix, regex=regex, limit=limit))


@router.get("/files/history")
def history(memory: Here, path: Path, limit: Limit = 20) -> Response:
    """The latest versions of a file, newest first."""
    return answer({"items": memory.files.history(path, limit=limit)})


@router.get("/files/diff")
def diff(memory: Here, path: Path, before: Version, after: MaybeVersion = None) -> Response:
    """What changed between two versions."""
    return answer({"diff": memory.files.diff(path, before, after)})


@router.post("/files/restore")
def restore(memory: Here, wanted: FileVersion) -> Response:
    """Writes an earlier version again."""
    return answer(memory.files.restore(wanted.path, wanted.version))


@router.get("/skills")
def skills(memory: Here) -> Response:
    """Name and description of every skill, and which are broken."""
    return answer(memory.skills.list())


@router.get("/skill-block")
def block(memory: Here, budget: Annotated[int, Query(ge=0, le=100_000)] = 1000) -> Response:
    """The list of skills as a block for a prompt."""
    return answer({"block": memory.skills.block(budget=budget)})


@router.get("/skills/{name}")
def skill(memory: Here, name: str, request: Request) -> Response:
    """One skill in full."""
    return answer(memory.skills.load(name), request=request)


@router.put("/skills/{name}")
def write_skill(memory: Here, name: str, text: SkillText, tag: Expected) -> Response:
    """Writes a skill over the version that was read, or a new one."""
    version = expected(tag, text.expected_version)
    return answer(
        memory.skills.write(
            name, description=text.description, body=text.body, expected=version or 0, folder=text.folder
        )
    )
