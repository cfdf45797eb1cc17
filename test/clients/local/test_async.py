"""Forward calls from asyncio on the demo model."""

from __future__ import annotations

import asyncio
import os
import unittest
from pathlib import Path
from typing import Any

import tapline_lab as tl
from tapline_lab import TaplineError

try:
    import numpy as np
except ImportError:
    np = None

PORT = int(os.environ["TAPLINE_TEST_SERVING_PORT"])
TEXTS = ["The capital of France is", "Tom"]


def written(model: tl.Model) -> int:
    """The number of results that the server has written into shared memory, from the name of one more."""
    file = Path(model._http.quick("/lab/forward", {"sequences": ["Tom"], "logits": "last", "transfer": "file"})["path"])
    file.unlink()
    return int(file.stem)


@unittest.skipIf(np is None, "NumPy is not installed")
class TestAsync(unittest.TestCase):
    def setUp(self) -> None:
        self.model = tl.connect(PORT)

    def test_an_async_model_has_the_same_methods(self) -> None:
        async def both() -> None:
            model = tl.AsyncModel(self.model)
            runs = await asyncio.gather(*(model.run(text, logits="last") for text in TEXTS))
            for run, text in zip(runs, TEXTS):
                np.testing.assert_array_equal(run.logits, self.model.run(text, logits="last").logits)
            self.assertEqual((await model.generate(TEXTS[0], 2)).text, self.model.generate(TEXTS[0], 2).text)

        asyncio.run(both())
        asyncio.run(both())  # another event loop, with its own connections
        ours = {name for name in vars(tl.Model) if not name.startswith("_")} & {"run", "generate", "vector", "probe", "features"}
        self.assertEqual(ours - set(vars(tl.AsyncModel)), set())

    def test_many_tasks_share_connections(self) -> None:
        expected = self.model.run(TEXTS[0], "block_out.6").cache["block_out.6"]

        async def work() -> list[Any]:
            model = tl.AsyncModel(self.model)
            return [await model.run(TEXTS[0], "block_out.6") for _ in range(8)]

        async def together() -> tuple[list[list[Any]], int]:
            found = await asyncio.gather(*(work() for _ in range(8)))
            return found, len(self.model._http._idle[asyncio.get_running_loop()])

        found, connections = asyncio.run(together())
        for run in sum(found, []):
            np.testing.assert_array_equal(run.cache["block_out.6"], expected)
        self.assertEqual(connections, 8)

    def test_cancelling_a_task_ends_its_pass(self) -> None:
        count = 8
        long = [list(range(1, 200))] * 64
        before = written(self.model)

        async def some() -> list[Any]:
            model = tl.AsyncModel(self.model)
            calls = [asyncio.create_task(model.run(long, "block_out.*", logits="all")) for _ in range(count)]
            await asyncio.sleep(0.2)
            for call in calls:
                call.cancel()
            found = await asyncio.gather(*calls, return_exceptions=True)
            self.assertEqual((await model.run(TEXTS[1])).logits.shape[:2], (1, 1))
            return found

        found = asyncio.run(some())
        ended = [one for one in found if not isinstance(one, BaseException)]
        self.assertLess(len(ended), count // 2)
        self.assertEqual({type(one) for one in found if one not in ended}, {asyncio.CancelledError})
        # The short calls, those that had ended, and one that may have ended just then. Passes run one after another.
        self.assertLessEqual(written(self.model) - before, 2 + len(ended) + 1)

    def test_errors_are_sentences(self) -> None:
        async def refused() -> None:
            await tl.AsyncModel(self.model).run(TEXTS[0], "hook_nothing")

        with self.assertRaisesRegex(TaplineError, '"hook_nothing" is not a point of this model'):
            asyncio.run(refused())
        late = tl.connect(PORT)
        late._http.timeout = 0.001

        async def slow() -> None:
            await tl.AsyncModel(late).run([list(range(1, 200))] * 64, "block_out.*", logits="all")

        with self.assertRaisesRegex(TimeoutError, "No response from .* for 0.001 s"):
            asyncio.run(slow())


if __name__ == "__main__":
    unittest.main()
