"""`python -m tc_emit` is the command tc-emit."""
from ._tool import main

main()
