"""Extractions as Hugging Face data sets. Imported only on demand, since it requires `datasets`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._errors import TaplineError

if TYPE_CHECKING:
    from ._row_files import Shard
    from ._rows import Rows

_ABOUT = ("id", "label", "split")


def iterable_dataset(rows: Rows) -> Any:
    try:
        import datasets
    except ImportError:
        raise TaplineError("to_datasets requires datasets: pip install datasets.") from None
    features = {
        "text": datasets.Value("int32"),
        **{name: datasets.Value("string") for name in _ABOUT},
        "token_ids": datasets.List(datasets.Value("int32")),
        **{f"layer_{layer}": datasets.Array2D((None, rows.hidden), "float32") for layer in rows.layers},
    }
    # A list is divided among the workers of a DataLoader.
    return datasets.IterableDataset.from_generator(
        _examples, features=datasets.Features(features), gen_kwargs={"rows": rows, "shards": rows._shards}
    )


def _examples(rows: Rows, shards: list[Shard]) -> Iterator[dict[str, Any]]:
    for shard in shards:
        about = _about_texts(rows, shard)
        for text in rows._texts(shard):
            yield {
                "text": text.index,
                **about.get(text.index, dict.fromkeys(_ABOUT)),
                "token_ids": text.token_ids,
                **{f"layer_{layer}": values for layer, values in text.layers.items()},
            }


def _about_texts(rows: Rows, shard: Shard) -> dict[int, dict[str, Any]]:
    """Ids, labels and splits of a shard's texts, from the table; empty for earlier versions' extractions, which have no table."""
    import pyarrow.parquet

    name = re.sub(r"^shard(-\d+-of-\d+)?-\d+\.safetensors$", r"index\1.parquet", shard.name)
    try:
        path = rows._folder.local(name)
        table = pyarrow.parquet.read_table(path, columns=["text", *_ABOUT], filters=[("shard", "==", shard.name)])
    except FileNotFoundError:
        return {}
    return {entry.pop("text"): entry for entry in table.to_pylist()}
