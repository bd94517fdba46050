"""
Run one server for as long as standard input stays open: `python keeper.py FOLDER_TO_REMOVE COMMAND...`.

Prints the server's pid. When the input ends, the server is ended (SIGTERM, after 15 s SIGKILL). A holder that was killed said
nothing before the end: then the folder, unless it is "", is removed too. Ends with the server's code when that ends itself.
Uses only the standard library, so that it starts in a few hundredths of a second under `python -I -S`.
"""

import os
import shutil
import subprocess
import sys
import threading

PATIENCE_S = 15


def _follow(server: "subprocess.Popen[bytes]", ending: threading.Event) -> None:
    code = server.wait()
    if not ending.is_set():
        os._exit(code if code >= 0 else 128 - code)  # the main thread sits in a read that nothing else ends


def main() -> int:
    """Keep one server; see the module's contract."""
    removable, *command = sys.argv[1:]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    sys.stdout.write(f"{server.pid}\n")
    sys.stdout.close()
    ending = threading.Event()
    threading.Thread(target=_follow, args=(server, ending), daemon=True).start()
    told = sys.stdin.buffer.read()
    ending.set()
    return _end(server, "" if told else removable)


def _end(server: "subprocess.Popen[bytes]", removable: str) -> int:
    server.terminate()
    try:
        server.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    if removable:
        shutil.rmtree(removable, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
