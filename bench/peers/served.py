"""tapline as its users call it from Python: a server for a GGUF file, and the client package in this process."""
import asyncio
from concurrent.futures import ThreadPoolExecutor


class Served:
    """tapline_lab.load and Model.run."""

    def __init__(self, path):
        import tapline_lab

        # With its default number of threads: all cores, or one for a tiny model.
        self.model = tapline_lab.load(path, "--ctx-size", "512", quiet=True)

    def forward(self, batch, layers):
        names = [f"blocks.{layer}.hook_out" for layer in layers]
        run = self.model.run(batch, names, logits="last")
        return [run.cache[name] for name in names], run.logits[:, -1]

    def calls(self, tokens, count, at_once, layer, tasks):
        """Calls with one prompt each, some at a time in threads or in tasks: captures of a block, or the last logits."""
        wanted = {"logits": "last"} if layer is None else {"capture": f"blocks.{layer}.hook_out"}
        if tasks:
            asyncio.run(self._in_tasks(tokens, count, at_once, wanted))
            return

        def one(_):
            self.model.run([tokens], **wanted)

        with ThreadPoolExecutor(at_once) as pool:
            for _ in pool.map(one, range(count)):
                pass

    async def _in_tasks(self, tokens, count, at_once, wanted):
        from tapline_lab import AsyncModel

        model, left = AsyncModel(self.model), iter(range(count))

        async def some():
            for _ in left:
                await model.run([tokens], **wanted)

        await asyncio.gather(*(some() for _ in range(at_once)))
