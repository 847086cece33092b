"""tee.py PREFIX PROGRAM ARGUMENTS: runs a program, copies what it prints to PREFIX.stdout, .stderr, .exit."""

import os
import subprocess
import sys
import threading
from pathlib import Path


def copy(source: int, to: int, file: Path) -> None:
    with file.open("wb", buffering=0) as kept:
        while data := os.read(source, 65536):
            kept.write(data)
            os.write(to, data)


def main(prefix: str, *command: str) -> int:
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    streams = {"stdout": (program.stdout, 1), "stderr": (program.stderr, 2)}
    copies = [
        threading.Thread(target=copy, args=(stream.fileno(), to, Path(f"{prefix}.{name}")))
        for name, (stream, to) in streams.items()
        if stream is not None
    ]
    for each in copies:
        each.start()
    code = program.wait()
    Path(f"{prefix}.exit").write_text(str(code))
    for each in copies:
        each.join()
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
