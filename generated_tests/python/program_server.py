"""Runs programs that are shared libraries inside of processes that live on, for programs of a GPU, which need longer to
begin than to run. What a program does to its process, a crash or exit(), is seen as of a program of its own; the next one
gets a new process."""
import os
import queue
import select
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "program_server.cc"


class ProgramServers:
    """Servers, as many as programs run at a time; safe to use from several threads. `folder` is for the server's program."""

    def __init__(self, folder):
        self.program, self.idle = folder / "program_server", queue.LifoQueue()
        subprocess.run(["g++", "-std=c++17", "-O1", SOURCE, "-ldl", "-o", self.program], check=True)

    def run(self, words, cwd, seconds):
        """A program's CompletedProcess, its output with both streams; TimeoutExpired where it has no end."""
        try:
            server = self.idle.get_nowait()
        except queue.Empty:
            server = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        output = Path(cwd) / "program_output.txt"
        output.unlink(missing_ok=True)
        server.stdin.write(b"\1".join(os.fsencode(word) for word in (cwd, output, *words)) + b"\n")
        server.stdin.flush()
        if not select.select([server.stdout], [], [], seconds)[0]:
            server.kill()
            server.wait()
            raise subprocess.TimeoutExpired(words, seconds)
        answer = server.stdout.readline()
        if answer:
            self.idle.put(server)
        else:
            server.stdin.close()
            server.wait()
        text = output.read_text(errors="replace") if output.exists() else ""
        return subprocess.CompletedProcess(words, int(answer) if answer else server.returncode, text)

    def close(self):
        while not self.idle.empty():
            server = self.idle.get()
            server.stdin.close()
            server.wait()
