"""A server as a child process, which chooses its port and prints it."""

import re
import subprocess
import threading


class Child:
    def __init__(self, name, command, ready, timeout=120, **options):
        """ready: a pattern for the line that a listening server prints; its group is the port."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self.process = subprocess.Popen(command, encoding="utf-8", errors="replace", **pipes, **options)
        timer = threading.Timer(timeout, self.process.kill)
        timer.start()
        printed, found = [], None
        for line in self.process.stdout:
            printed.append(line.rstrip())
            found = re.search(ready, line)
            if found:
                break
        timer.cancel()
        if found is None:
            raise RuntimeError(f"{name} did not start: " + " / ".join(printed[-6:]))
        threading.Thread(target=lambda: [None for _ in self.process.stdout], daemon=True).start()
        self.address = f"http://127.0.0.1:{found[1]}"

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
