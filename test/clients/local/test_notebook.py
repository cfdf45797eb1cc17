"""The Lab client in a notebook and under asyncio, against services that answer as a test says."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import sys
import threading
import types
import unittest
from typing import Any
from unittest import mock

from scripted import Scripted, send_json
from tapline_lab import AsyncLab, Job, Lab, TaplineError

ID = "0123456789abcdef0123456789abcdef"


def job(status: str, operation: str = "inspect", **more: Any) -> dict[str, Any]:
    progress = {"stage": "capture", "done": 3, "total": 8}
    return {"id": ID, "operation": operation, "status": status, "model": "demo", "progress": progress, **more}


def shown(**fields: Any) -> str:
    return Job(fields, lambda *_: b"")._repr_html_()


class TestAsyncLab(unittest.TestCase):
    def test_it_has_every_method_of_lab_with_its_arguments_and_awaits_it(self) -> None:
        def methods(client: type) -> dict[str, Any]:
            return {name: value for name, value in vars(client).items() if not name.startswith("_")}

        self.assertEqual(methods(AsyncLab).keys(), methods(Lab).keys())
        for name, method in methods(AsyncLab).items():
            self.assertTrue(inspect.iscoroutinefunction(method), name)
            self.assertEqual(inspect.signature(method), inspect.signature(getattr(Lab, name)), name)

    def test_jobs_are_submitted_and_waited_for_side_by_side(self) -> None:
        looks: list[str] = []

        def answer(handler: Any, method: str, path: str, body: bytes) -> None:
            looks.append(method)
            send_json(handler, 200, job("queued" if len(looks) < 6 else "completed"))

        async def both(lab: AsyncLab) -> list[Any]:
            jobs = [await lab.inspect("demo", text, layers=range(2)) for text in ("a", "b")]
            return await asyncio.gather(*(lab.wait(each, interval=0.01) for each in jobs))

        with Scripted(answer) as service:
            done = asyncio.run(both(AsyncLab(service.url)))
        self.assertEqual([each["status"] for each in done], ["completed", "completed"])

    def test_the_event_loop_goes_on_while_a_service_is_silent(self) -> None:
        over = threading.Event()

        async def ticks(lab: AsyncLab) -> int:
            waiting = asyncio.create_task(lab.health())
            for count in itertools.count():
                if waiting.done():
                    return count
                await asyncio.sleep(0.001)
                if count == 20:
                    over.set()
            raise AssertionError

        with Scripted(lambda handler, *_: over.wait(600) and send_json(handler, 200, {})) as service:
            self.assertGreater(asyncio.run(ticks(AsyncLab(service.url))), 20)

    def test_errors_deadline_and_cancellation(self) -> None:
        with Scripted(lambda handler, *_: send_json(handler, 200, job("failed", error="No."))) as service:
            with self.assertRaisesRegex(TaplineError, "^No.$"):
                asyncio.run(AsyncLab(service.url).wait(ID))
        with Scripted(lambda handler, *_: send_json(handler, 200, job("running"))) as service:
            lab = AsyncLab(service.url)
            with self.assertRaisesRegex(TimeoutError, "still running after 0.05 s"):
                asyncio.run(lab.wait(ID, timeout=0.05, interval=0.01))
            with self.assertRaises(asyncio.TimeoutError):
                asyncio.run(asyncio.wait_for(lab.wait(ID, interval=60), 0.05))
        self.assertEqual({method for method, _, _ in service.seen}, {"GET"})  # nothing is cancelled there


class TestNotebook(unittest.TestCase):
    def test_progress_is_one_output_of_the_cell_that_is_empty_in_the_end(self) -> None:
        display = mock.Mock()
        shell = types.SimpleNamespace(kernel=object())
        ipython: Any = types.SimpleNamespace(get_ipython=lambda: shell)
        left = [job("queued"), job("running"), job("completed")]
        modules = {"IPython": ipython, "IPython.display": display}
        with mock.patch.dict(sys.modules, modules):
            with Scripted(lambda handler, *_: send_json(handler, 200, left.pop(0))) as service:
                Lab(service.url).wait(ID, interval=0.01)
        calls = display.display.call_args_list
        texts = [call.args[0]["text/plain"] for call in calls]
        self.assertRegex(texts[0], r"^inspect 01234567 queued: capture 3/8 \(\d+ s\)$")
        self.assertRegex(texts[1], "running")
        self.assertEqual(texts[2:], [""])
        self.assertEqual([call.kwargs["update"] for call in calls], [False, True, True])
        self.assertEqual(len({call.kwargs["display_id"] for call in calls}), 1)

    def test_ipython_in_a_terminal_is_no_notebook(self) -> None:
        display = mock.Mock()
        ipython: Any = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace())
        left = [job("running"), job("completed")]
        with mock.patch.dict(sys.modules, {"IPython": ipython, "IPython.display": display}):
            with Scripted(lambda handler, *_: send_json(handler, 200, left.pop(0))) as service:
                Lab(service.url).wait(ID, interval=0.01)
        display.display.assert_not_called()

    def test_a_job_is_a_table_and_texts_are_no_markup(self) -> None:
        candidate = {"token_id": 1, "token": "<b>\u202e", "probability": 0.123456}
        layer = {"layer": 3, "norms": [1.5, 22.25]}
        result = {"tokens": ["a", " b"], "layers": [layer], "next_tokens": [candidate]}
        html = shown(**job("completed", result=result))
        self.assertIn("<b>inspect 01234567, demo: completed</b>", html)
        self.assertIn("<td>&#x27;&lt;b&gt;\\u202e&#x27;</td><td>0.1235</td>", html)
        self.assertIn("<td>3</td><td>1.5</td><td>22.25</td>", html)

        trial = {
            "prompt": "p",
            "strength": 1,
            "target_token": " x",
            "baseline_probability": 0.5,
            "probability": 0.25,
            "delta": -0.25,
            "output": "<script>",
        }
        html = shown(**job("completed", "compare", result={"trials": [trial] * 42}))
        self.assertIn("<td>&lt;script&gt;</td>", html)
        self.assertEqual(html.count("<tr>"), 41)  # the head and 40 rows
        self.assertIn("2 more rows", html)

    def test_jobs_without_a_result(self) -> None:
        self.assertEqual(shown(**job("queued")), "<p><b>inspect 01234567, demo: queued</b></p>")
        self.assertIn("<p>A &lt;reason&gt;.</p>", shown(**job("failed", error="A <reason>.")))
