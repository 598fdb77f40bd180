"""The rival of the IPython bench: a Jupyter kernel over TCP, its messages awaited as a client awaits them.

Each line of input is a number of cells to run; the answer is a line with the milliseconds of each, as JSON.
"""

import json
import sys
import time

from jupyter_client.manager import KernelManager

manager = KernelManager(kernel_name="python3", transport="tcp")
manager.start_kernel()
client = manager.blocking_client()
client.start_channels()
client.wait_for_ready(timeout=60)


def run():
    """As ProRL and OpenHands know that a cell has ended: its kernel is idle again and has replied."""
    output = []
    reply = client.execute_interactive(
        "print(6 * 7)",
        store_history=False,
        output_hook=lambda message: output.append(message["content"].get("text", "")),
    )
    assert reply["content"]["status"] == "ok" and "".join(output) == "42\n"


run()
print("[]", flush=True)
for line in sys.stdin:
    times = []
    for _ in range(int(line)):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1000)
    print(json.dumps(times), flush=True)
client.stop_channels()
manager.shutdown_kernel(now=True)
