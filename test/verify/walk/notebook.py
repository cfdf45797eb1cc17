"""Runs programs one after the other, with the names that those before have left, as a notebook does.

Each line of standard input names a program's file and one that takes all that it writes; the answer on standard
output is the program's exit code.
"""

import os
import sys
import traceback

answers = os.dup(1)
names: dict[str, object] = {"__name__": "__main__"}
for line in sys.stdin:
    program, output = line.rstrip("\n").split("\t")
    file = os.open(output, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
    code = 0
    try:
        with open(program, encoding="utf-8") as source:
            exec(compile(source.read(), program, "exec"), names)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(answers, f"{code}\n".encode())
