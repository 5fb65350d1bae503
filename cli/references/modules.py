"""Which of the modules that tc-emit asks for this Python can import, as one line of JSON.

arguments: MODULE...
"""
import importlib
import json
import sys


def version_of(name):
    try:
        return str(getattr(importlib.import_module(name), "__version__", "unknown"))
    except Exception:  # a module that is there and broken is of no more use than none
        return ""


print(json.dumps({"executable": sys.executable, "modules": {name: version_of(name) for name in sys.argv[1:]}}))
