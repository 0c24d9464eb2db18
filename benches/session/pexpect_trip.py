"""bash driven by pexpect: runs `true` at each line of standard input and prints how long it took.

The times are nanoseconds. `fast` as argument takes away the delay before each line that is sent.
"""

import sys
import time

from pexpect import replwrap

bash = replwrap.bash()
if sys.argv[1:] == ["fast"]:
    bash.child.delaybeforesend = None


def trip():
    start = time.perf_counter_ns()
    bash.run_command("true")
    return time.perf_counter_ns() - start


print(trip(), flush=True)
for _ in sys.stdin:
    print(trip(), flush=True)
