"""The versions of those modules that this Python can import, by name, as one line of JSON.

arguments: MODULE...
"""
import importlib
import json
import sys


def version_of(name):
    try:
        return str(getattr(importlib.import_module(name), "__version__", "unknown"))
    except Exception:  # a module that is there and broken is of no more use than none
        return None


print(json.dumps({name: version_of(name) for name in sys.argv[1:]}))
