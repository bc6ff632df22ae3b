"""Float arrays of a data directory as Kaldi ark and scp: f0.scp, xvector.scp, ...

Only binary float arrays are read: an ark may also hold pickles, which run code, so those are refused.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

import kaldiio
import numpy as np
from kaldiio.matio import read_matrix_or_vector

from dpanon.data.data_dir import check_id, read_table
from dpanon.errors import DataDirError


class ArrayWriter:
    """Write ``<name>.ark`` and ``<name>.scp``; neither has its name before everything is written.

    ``scp_path`` must end in ``.scp``. The scp holds the absolute path of the ark, so that shards can be merged;
    with ``relative`` its name alone, so that the set can move and tells nothing of this machine.

    >>> with ArrayWriter("data/test/f0.scp") as writer:
    ...     writer["1272-128104-0000"] = f0  # float32 (T,) or (T, M)
    """

    def __init__(self, scp_path: str | Path, relative: bool = False):
        self.scp = Path(os.path.abspath(scp_path))
        self._relative = relative
        if self.scp.suffix != ".scp":
            raise DataDirError(f"{scp_path}: the name of an array table ends in .scp")
        self.ark = self.scp.with_suffix(".ark")
        self._tmp_ark = self.ark.with_name(f".{self.ark.name}.tmp{os.getpid()}")
        self._tmp_scp = self.scp.with_name(f".{self.scp.name}.tmp{os.getpid()}")
        self._file = open(self._tmp_ark, "wb")
        self._rows: dict[str, str] = {}

    def __setitem__(self, utt: str, array: np.ndarray) -> None:
        check_id(utt, f"{self.scp}")
        if utt in self._rows:
            raise DataDirError(f"{self.scp}: {utt!r} is written twice")
        array = np.asarray(array)
        if array.dtype.kind != "f" or array.ndim not in (1, 2) or not np.isfinite(array).all():
            state = "finite" if array.dtype.kind != "f" or np.isfinite(array).all() else "not all finite"
            raise DataDirError(
                f"{self.scp}: {utt!r}: expected finite floats of 1 or 2 axes, got {array.dtype} "
                f"{list(array.shape)}, {state}"
            )
        offset = self._file.tell() + len(utt.encode()) + 1
        kaldiio.save_ark(self._file, {utt: np.ascontiguousarray(array, np.float32)})
        self._rows[utt] = f"{self.ark.name if self._relative else self.ark}:{offset}"

    def close(self) -> None:
        """Give both files their names. The old scp goes first: it must never point into the new ark."""
        self._file.close()
        self._tmp_scp.write_text("".join(f"{u} {p}\n" for u, p in sorted(self._rows.items())), encoding="utf-8")
        self.scp.unlink(missing_ok=True)
        os.replace(self._tmp_ark, self.ark)
        os.replace(self._tmp_scp, self.scp)

    def abandon(self) -> None:
        """Leave nothing behind."""
        self._file.close()
        self._tmp_ark.unlink(missing_ok=True)
        self._tmp_scp.unlink(missing_ok=True)

    def __enter__(self) -> "ArrayWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        if kind is None:
            self.close()
        else:
            self.abandon()


class ScpArrays(Mapping[str, np.ndarray]):
    """The arrays of an scp by utterance, each read when it is asked for."""

    def __init__(self, scp_path: str | Path):
        self.scp = Path(scp_path)
        self._rows = read_table(self.scp)

    def __getitem__(self, utt: str) -> np.ndarray:
        path, _, offset = self._rows[utt].rpartition(":")
        if not path or not offset.isdigit():
            raise DataDirError(f"{self.scp}: {utt!r}: expected <ark>:<offset>, found {self._rows[utt]!r}")
        try:
            with open(self.scp.parent / path, "rb") as file:
                file.seek(int(offset))
                if file.read(2) != b"\0B":
                    raise DataDirError(f"{self.scp}: {utt!r}: no binary array at {path}:{offset}")
                file.seek(int(offset))
                array, size = read_matrix_or_vector(file, return_size=True)
                if file.tell() != int(offset) + size:
                    raise ValueError("the ark is cut short")
                return np.array(array, dtype=np.float32)
        except (OSError, ValueError, AssertionError) as error:
            raise DataDirError(f"{self.scp}: {utt!r}: cannot read {path}:{offset}: {error}") from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def load_scp(path: str | Path) -> ScpArrays:
    """Lazy mapping of utterance -> float32 array. A relative ark is looked up beside the scp."""
    return ScpArrays(path)
