"""What drivers count: cases that pass, and those that fail, each told in a line."""
from toolchain import Failed


class Tally:
    def __init__(self):
        self.passed = self.failed = 0

    def judge(self, what, check):
        """`check()` gives the number of what passed, or raises Failed."""
        try:
            self.passed += check()
        except Failed as failure:
            self.failed += 1
            print(f"FAILED {what}: {failure}", flush=True)

    def status(self):
        """Prints the last line of a driver; its exit status."""
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed else 0
