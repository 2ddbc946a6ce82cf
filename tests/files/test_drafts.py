"""Drafts of writers that were killed are removed, and only these."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from luciole.files import write_file
from luciole.files.drafts import ENDING
from tests.support import heed_interrupts
from tests.tools.running import left_behind

HOLD = """
import sys, time
from luciole.files import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("begun", flush=True)
    time.sleep(600)
"""


def test_drafts_of_killed_writers_are_removed_and_those_of_others_not(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    command = [sys.executable, "-c", HOLD, str(path)]
    writers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=heed_interrupts)
        for _ in range(2)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"begun\n"
    assert len(left_behind(tmp_path)) == 2
    assert all(n.startswith(".a.txt.") and n.endswith(ENDING) for n in left_behind(tmp_path))
    writers[0].kill()
    writers[0].wait()
    write_file(path, b"whole")
    assert len(left_behind(tmp_path)) == 2, "the file and the draft of who still writes"
    writers[1].send_signal(signal.SIGINT)
    writers[1].wait()
    assert left_behind(tmp_path) == {"a.txt"}
    assert path.read_bytes() == b"whole"


def test_what_only_looks_like_a_draft_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    others = [tmp_path / f"{name}{ENDING}" for name in (".b.txt.1", "a.txt.1", ".a.txt.2")]
    for other in others[:2]:
        other.touch()
    others[2].symlink_to(others[0])
    os.mkfifo(tmp_path / f".a.txt.pipe{ENDING}")
    write_file(path, b"")
    assert all(other.exists() for other in others)


def test_many_writers_leave_one_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    contents = [bytes([65 + i]) * 50_000 for i in range(8)]
    writers = [
        threading.Thread(target=lambda c=c: [write_file(path, c) for _ in range(20)])
        for c in contents
    ]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        if path.exists():
            seen.add(path.read_bytes())
    for writer in writers:
        writer.join()
    assert seen <= set(contents)
    assert path.read_bytes() in contents
    assert left_behind(tmp_path) == {"a.txt"}
