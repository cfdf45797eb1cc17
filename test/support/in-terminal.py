"""Runs a command in a separate terminal: in-terminal.py COLUMNS ROWS COMMAND...

Standard input is typed; the terminal's output goes to standard output. Ends as the command does.
"""
import fcntl
import os
import pty
import select
import struct
import sys
import termios

columns, rows = int(sys.argv[1]), int(sys.argv[2])
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    os.execvp(sys.argv[3], sys.argv[3:])
watched = [0, terminal]
while terminal in watched:
    for ready in select.select(watched, [], [])[0]:
        try:
            data = os.read(ready, 65536)
        except OSError:  # the command has ended
            data = b""
        if not data:
            watched.remove(ready)
        elif ready == 0:
            os.write(terminal, data)
        else:
            os.write(1, data)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(status if status >= 0 else 128 - status)
