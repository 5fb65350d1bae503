"""CUDA packages on the CPU with every access of memory checked (docs/cuda_on_cpu.md), built by hand: what packages share is
compiled once."""
import subprocess

from toolchain import TEXTS, CudaToolchain, Failed, call, first_line

CHECKS = ["-DTC_CUDA_CHECK=1", "-fsanitize=thread,alignment,bounds", "--param=tsan-instrument-func-entry-exit=0"]  # without their libraries
NOTHING_FOUND = "cuda_on_cpu_check: nothing found"


class CheckedCudaToolchain(CudaToolchain):
    """Programs that end with code 66, or do not say NOTHING_FOUND, did something that CUDA forbids."""

    def prepare(self, folder):
        super(CudaToolchain, self).prepare(folder)
        self.objects = []
        for source in sorted(self.ON_CPU.glob("*.cc")):
            self.objects.append(folder / f"{source.stem}.o")
            subprocess.run([*self.cxx, "-O2", f"-I{TEXTS}", f"-I{self.ON_CPU}", "-c", source, "-o", self.objects[-1]], check=True)

    def program_of(self, package, sources, program, flags=()):
        """Compiles the kernels and `sources` as one file, and links it with what runs them."""
        text = package / f"{program.name}_all.cc"
        text.write_text("".join(f'#include "{path}"\n' for path in (self.declarations, *sorted(package.rglob("*.cu")), *sources)))
        compiled = package / f"{program.name}.o"
        includes = [f"-I{package / 'cuda_on_cpu'}", f"-I{package}"]
        program_text = [self.program] if package / "main.c" in sources else []
        for command in ([*self.cxx, *CHECKS, "-DTC_MAIN_H", *flags, *includes, "-c", text, "-o", compiled],
                        [*self.cxx, compiled, *package.glob("*.S"), *program_text, *self.objects, "-lpthread", "-lm", "-o", program]):
            result = call("compile", command, {}, cwd=package)
            if result.returncode:
                raise Failed("compile: " + first_line(result.stdout, r"error:|warning:|undefined"))

    def build(self, package, program, seconds):
        self.program_of(package, [package / "main.c"], program)
