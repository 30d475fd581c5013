"""A path is refused, or it is kept exactly and lands inside of a folder under a name that reads back to it."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from everlong.errors import InvalidInput, InvalidPath
from everlong.files.disk import folded, name_of, part_of
from everlong.files.paths import check_path, glob_pattern, kept_at
from everlong.records import Scope

PARTS = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="aA.:%\\/ ~-*?\x00茶é", max_size=8),
    st.sampled_from(["..", ".", "CON", "nul.txt", "%2e", "coder.", "memories", "policies"]),
)
PATHS = st.lists(PARTS, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


def valid(path: str) -> bool:
    try:
        return check_path(path) == path
    except InvalidPath:
        return False


@settings(max_examples=400)
@given(PATHS)
def test_a_valid_path_lands_inside_and_reads_back(path: str) -> None:
    if not valid(path):
        return
    name = name_of(path[1:], ())
    assert name is not None
    parts = name.split("/")
    assert len(parts) == path.count("/")
    for part in parts:
        assert part not in {"", ".", ".."}
        assert not set(part) & set('<>:"\\|?*\x00')
        assert not part.startswith(".")
        assert part[-1] not in ". "
    if "%-" not in name:
        assert "/" + "/".join(map(part_of, parts)) == path


@settings(max_examples=200)
@given(st.lists(PATHS, max_size=8, unique=True))
def test_no_two_paths_share_a_name(paths: list[str]) -> None:
    taken: set[str] = set()
    for path in filter(valid, paths):
        name = name_of(path[1:], taken)
        assert name is None or folded(name) not in taken
        if name is not None:
            taken.add(folded(name))


@given(PATHS)
def test_a_file_is_never_kept_where_it_cannot_be_seen(path: str) -> None:
    scope = Scope(org="o", agent="a", user="u", session="s")
    if valid(path):
        assert kept_at(scope, path).covers(scope)


@given(st.text(alphabet="ab*?[]{},!/\\茶-^", max_size=12), PATHS)
def test_any_glob_is_a_pattern_or_refused(glob: str, path: str) -> None:
    with suppress(InvalidInput):
        glob_pattern(glob).fullmatch(path, timeout=2)


@given(PATHS.filter(lambda path: valid(path) and not set(path) & set("*?[]{},!")))
def test_a_path_is_its_own_glob(path: str) -> None:
    assert glob_pattern(path).fullmatch(path)
    assert not glob_pattern(path).fullmatch(path + "x")
