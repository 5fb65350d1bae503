"""What a benchmark has to know about its machine: the processor, whether anything else was running, and how far apart its cores are."""
import os
import subprocess
import sys
import time
from pathlib import Path


def processor():
    """The processor's name, with the instruction sets that matter and the number of cores seen."""
    with open("/proc/cpuinfo") as info:
        fields = dict(line.split(":", 1) for line in info if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    flags = fields.get("flags", "").split()
    sets = [name for name in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_vp2intersect", "amx_tile") if name in flags]
    family = f"family {fields.get('cpu family', '?')} model {fields.get('model', '?')}"
    return f"{fields.get('model name', 'unknown')} ({family}; {' '.join(sets)}), {os.cpu_count()} cores"


def busy_seconds():
    """Seconds that all cores together have spent on anything but idling and waiting, since boot."""
    with open("/proc/stat") as stat:
        user, nice, system, _, _, irq, soft, steal = map(int, stat.readline().split()[1:9])
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def run_pinned(command, cores):
    """Runs a command on the first `cores` cores; returns (exit code, its output, cores that others kept busy meanwhile)."""
    wanted = set(sorted(os.sched_getaffinity(0))[:cores])
    before, start = busy_seconds(), time.monotonic()
    child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, preexec_fn=lambda: os.sched_setaffinity(0, wanted))
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    others = busy_seconds() - before - usage.ru_utime - usage.ru_stime
    return child.returncode, output, max(0.0, others / (time.monotonic() - start))


class RoundTrip:
    """How long a cache line takes from the first core to the second and back (round_trip.c). The host of a virtual machine moves its cores:
    where they lie on two chips for a while, two threads that share tensors take up to 1.7 times as long, whoever wrote their program."""

    FAR = 2.0  # times the least of a report

    def __init__(self, folder, cc):
        """Compiles the program into a folder."""
        self.program = Path(folder) / "round_trip"
        source = Path(__file__).resolve().with_name("round_trip.c")
        made = subprocess.run([cc, "-O2", "-std=c11", source, "-o", self.program, "-pthread"], capture_output=True, text=True)
        if made.returncode:
            sys.exit(f"{source.name}: {made.stderr[-2000:]}")
        self.least = float("inf")
        self.is_far()

    def is_far(self):
        """Now? Never where there is one core."""
        if len(os.sched_getaffinity(0)) < 2:
            return False
        _, text, _ = run_pinned([self.program], 2)
        self.least = min(self.least, float(text))
        return float(text) > self.FAR * self.least
