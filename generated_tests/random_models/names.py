"""Names of tensors: plain ones, C's words, and names that the headers of the C library define."""
import functools
import subprocess

HEADERS = "stddef stdint string stdlib math float limits stdio time errno signal ctype".split()
WORDS = ("auto break case char const int long register restrict return short signed sizeof static struct void volatile inline _Bool bool true false NULL class new delete this template "
         "m in out i j k n x y acc main exp tanh malloc free memcpy printf abs index time AT WEIGHT SCRATCH STATUS weights workspace inputs outputs run init").split()
ODD = ["a.b", "a/b:0", "1st", "x-y", "näme", "名", "", "a b", "__x", "_X", "A", "a", "x*/", "//", "\\", '"', "%d", "$", "x" * 80, "tc_vf", "TC_VL"]


@functools.cache
def macros():
    """Every macro that the headers of C define on this machine."""
    text = "".join(f"#include <{name}.h>\n" for name in HEADERS)
    listed = subprocess.run(["gcc", "-D_GNU_SOURCE", "-dM", "-E", "-"], input=text, capture_output=True, text=True, check=True).stdout
    return sorted({line.split()[1].split("(")[0] for line in listed.splitlines() if line.startswith("#define") and not line.split()[1].startswith("__")})


def maker(rng):
    """A function that gives a new name each time. One model in sixteen has names that are hard to write in C."""
    pool = [f"t{k}" for k in range(4)]
    if rng.random() < 0.06:
        pool = rng.sample([*WORDS, *(name for name in ODD if name), *rng.sample(macros(), 40)], 60)
    count, used = [0], set()

    def name():
        count[0] += 1
        chosen = rng.choice(pool) if pool[0] != "t0" else f"t{count[0]}"
        if chosen in used or not chosen:
            chosen = f"{chosen}_{count[0]}"
        used.add(chosen)
        return chosen
    return name
