"""Parquet, Arrow and Feather files, read by pyarrow column by column (``pip install 'urdf-ident[parquet]'``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import LogError
from ...linalg import Array
from ..columns.headers import JOINT_COLUMN, with_joints
from ..tables import WIDEST, Rows, Table, decoding
from .lines import holds_numbers, numbers_of

#: Rows that are read at a time, so that memory does not grow with the length of a log.
_BATCH = 1 << 16
#: Rows used to decide whether a text column contains numbers.
_FIRST = 20


@dataclass(frozen=True)
class Column:
    """Location of a numeric column.

    Attributes:
        field: Its field; ``<struct>.<field>`` for a field of a struct.
        element: Its element if the field contains lists, else None.
        root: The top-level field: the struct, or the field itself.
    """

    name: str
    field: str
    element: int | None
    root: str


@dataclass(frozen=True, eq=False)
class ParquetTable(Table):
    """A Parquet, Arrow or Feather file.

    Attributes:
        kind: "parquet" or "arrow".
        joints: Fields that list the joint names of each row, as in a JointState, and their names in the first row.
        rows: First row and one past the last row of the log if the file contains several logs; else None.
    """

    kind: str = field(kw_only=True)
    columns: tuple[Column, ...] = field(kw_only=True)
    joints: tuple[tuple[Column, tuple[str, ...]], ...] = field(default=(), kw_only=True)
    rows: tuple[int, int] | None = field(default=None, kw_only=True)

    def blocks(self, columns: Sequence[int]) -> Iterator[tuple[Array, Rows]]:
        """See :meth:`Table.blocks`; nulls are NaN, and a list that changes its length is refused."""
        file, wanted = self.files[0], [self.columns[k] for k in columns]
        whole, begin, end = np.empty((0, len(columns))), 0, 0
        with decoding(file, f"{self.kind} file", "parquet"):
            self._check_joints()
            for name in dict.fromkeys(column.field for column in wanted):  # so that only one is unpacked
                elements = [column for column in self.columns if column.field == name]
                data = self._unpacked(elements[0])
                begin, end = self.rows or (0, len(data))
                if not 0 <= begin < end <= len(data):
                    raise LogError(
                        "the log's rows are not in its file",
                        where=self.path,
                        got=f"rows {begin} to {end} of {len(data)}",
                        remedy="check the data set's index",
                    )
                length = None if elements[0].element is None else len(elements)
                values = _numbers(data.slice(begin, end - begin), name, length, file)
                whole = whole if len(whole) else np.empty((end - begin, len(columns)))
                for k, column in enumerate(wanted):
                    if column.field == name:
                        whole[:, k] = values[:, column.element or 0]
        yield whole, np.arange(begin + 1, end + 1)

    def _unpacked(self, column: Column) -> Any:
        """The field of a column, of all rows of the file, as one of pyarrow's chunked arrays."""
        import pyarrow as pa

        return _flat(pa.Table.from_batches(_batches(self.files[0], self.kind, [column.root]))).column(column.field)

    def _check_joints(self) -> None:
        """Refuses a log whose rows differ in the names or the order of the joints."""
        import pyarrow.compute as pc

        for column, joints in self.joints:
            lists = self._unpacked(column)
            same = pc.unique(pc.list_value_length(lists)).to_pylist() == [len(joints)]
            if not same or any(pc.unique(pc.list_element(lists, k)).to_pylist() != [joints[k]] for k in range(len(joints))):
                raise LogError(
                    "the joints change their order in the log",
                    where=self.path,
                    expected=f"'{column.name}' is {', '.join(joints)} in every row",
                    remedy="give every row the same order, or write one column a joint",
                )


def open_parquet(path: str | Path, kind: str, *, names: Mapping[str, Sequence[str]] | None = None) -> ParquetTable:
    """Opens a Parquet or Arrow file; lists of numbers become one column per element.

    Args:
        kind: "parquet" or "arrow" (IPC file or stream, including Feather).
        names: Field → names of its elements; ``<field>_<k>`` by default.

    Returns:
        The table; fields without numbers are left out.

    Raises:
        MissingExtraError: pyarrow is not installed.
        LogError: The file is broken, or contains no numbers.
    """
    with decoding(path, f"{kind} file", "parquet"):
        import pyarrow as pa

        first = next(iter(_batches(str(path), kind, None, _FIRST)), None)
        if first is None or first.num_rows == 0:
            raise LogError("the log holds no rows", where=str(path), remedy="check the recording, or remove the file")
        first = pa.Table.from_batches([first])
        columns: list[Column] = []
        joints: list[tuple[Column, tuple[str, ...]]] = []
        skipped = []
        for root in first.schema.names:
            flat = _flat(first.select([root]))
            for field in flat.schema.names:
                field_columns = _columns(flat.column(field), field, root, (names or {}).get(field))
                columns += field_columns
                texts = flat.column(field)[0].as_py() if JOINT_COLUMN.fullmatch(field) else None
                if isinstance(texts, list) and texts and all(isinstance(text, str) for text in texts):
                    joints.append((Column(field, field, None, root), tuple(texts)))
                elif not field_columns:
                    skipped.append(field)
    if not columns:
        raise LogError("no column of the log holds numbers", where=str(path), got=", ".join(skipped[:8]))
    notes = (f"fields without numbers left out: {', '.join(skipped)}",) if skipped else ()
    heads = tuple(column.name for column in columns)
    spelled = with_joints(heads, {column.name[: column.name.rfind(".") + 1]: texts for column, texts in joints})
    return ParquetTable(
        str(path),
        heads,
        len(columns),
        (str(path),),
        notes,
        kind=kind,
        columns=tuple(columns),
        joints=tuple(joints) if spelled else (),
        spelled=spelled,
        texts=tuple(skipped),
    )


def _flat(table: Any) -> Any:
    """A table with structs replaced by their fields."""
    import pyarrow.types as types

    while any(types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    return table


def _columns(values: Any, field: str, root: str, names: Sequence[str] | None) -> list[Column]:
    """The columns of a field by its first values: one of numbers, one per element of lists of numbers, none of others."""
    import pyarrow.types as types

    kind = values.type
    numeric = types.is_floating(kind) or types.is_integer(kind) or types.is_temporal(kind) or types.is_decimal(kind)
    if numeric or (_is_text(kind) and holds_numbers(values.to_pylist())):
        return [Column(names[0] if names and len(names) == 1 else field, field, None, root)]
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        if not (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)):
            return []
        length = len(values[0].as_py() or ())
        if not 0 < length <= WIDEST:
            return []
        element_names = names if names is not None and len(names) == length else [f"{field}_{k}" for k in range(length)]
        return [Column(name, field, k, root) for k, name in enumerate(element_names)]
    return []


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _batches(path: str, kind: str, fields: list[str] | None, rows: int = _BATCH) -> Iterator[Any]:
    import pyarrow as pa

    if kind == "parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path, memory_map=False) as file:
            yield from file.iter_batches(batch_size=rows, columns=fields, use_threads=False)
        return
    with pa.OSFile(path) as source:  # mapped, a file that another process shortens would end this one
        try:
            reader = pa.ipc.open_file(source)
            if fields is not None:
                wanted = [reader.schema.get_field_index(field) for field in fields]
                reader = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=wanted, use_threads=False))
            batches: Iterator[Any] = (reader.get_batch(k) for k in range(reader.num_record_batches))
        except pa.ArrowInvalid:
            source.seek(0)
            batches = iter(pa.ipc.open_stream(source))
        for batch in batches:
            batch.validate(full=True)
            yield batch if fields is None else batch.select(fields)


def _numbers(column: Any, field: str, length: int | None, where: str) -> Array:
    """The numbers of a field, shape (rows, elements)."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as types

    if length is not None:
        if pc.unique(pc.list_value_length(column)).to_pylist() != [length]:
            raise LogError(
                f"the lists of '{field}' differ in length",
                where=where,
                expected=f"{length} numbers in every row",
                remedy="cut the log where its joints change",
            )
        return np.asarray(pc.list_flatten(column).to_numpy(), dtype=float).reshape(-1, length)
    if types.is_timestamp(column.type) or types.is_duration(column.type) or types.is_time(column.type):
        per_second = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[column.type.unit]
        whole = column.cast(pa.int32() if types.is_time32(column.type) else pa.int64())
        return np.asarray(whole.to_numpy(), dtype=float)[:, None] / per_second
    if _is_text(column.type):
        return numbers_of(column.to_pylist())[:, None]
    if not (types.is_floating(column.type) or types.is_integer(column.type)):
        column = column.cast(pa.float64())
    return np.asarray(column.to_numpy(), dtype=float)[:, None]
