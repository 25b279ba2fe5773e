"""Drive the BIRD of a server with TRex's PyBird client, and print what it saw as one JSON object.

Runs in the official client's own environment (scripts/official-client.sh), never in pytest's.

usage: bird_session.py HOST BIRD_PORT
"""

# ruff: noqa: I001  # the order of imports matters here
import json
import sys

import modern_python  # noqa: F401  # answers what the client cannot find in today's Python
import lbr_trex_client  # noqa: F401  # puts the client's own libraries on the path
from trex.common.trex_exceptions import TRexError
from trex.pybird.bird_cfg_creator import BirdCFGCreator
from trex.pybird.pybird_zmq_client import PyBirdClient


def refusal(call, *arguments):
    """What a call that must fail says."""
    try:
        call(*arguments)
    except TRexError as error:
        return str(error)
    raise AssertionError(f"{call.__name__} was not refused")


def main(host, port):
    client = PyBirdClient(ip=host, port=int(port))
    other = PyBirdClient(ip=host, port=int(port))
    seen = {"connected": client.connect()}
    other.connect()
    seen["first"] = client.get_config()
    handler = client.acquire()
    seen["is_number"] = isinstance(handler, int)
    seen["second"] = refusal(other.acquire)

    creator = BirdCFGCreator()
    creator.add_simple_bgp()
    creator.add_many_routes("42.42.42.0", 2000, "1.1.1.3")
    config = creator.build_config()
    seen["configured"] = client.set_config(config)
    seen["is_as_sent"] = client.get_config() == config
    seen["again"] = client.set_config(config)
    seen["protocols"] = client.get_protocols_info()
    seen["wrong"] = client.set_config("router id 1.1.1.3;\nprotocol bgp {\n  nonsense;\n}\n")
    seen["kept"] = client.get_config() == config
    seen["emptied"] = client.set_empty_config()
    seen["known"] = client.set_config(config)

    # As one that is gone and left its handler.
    seen["forced"] = other.acquire(force=True) != handler
    seen["lost"] = refusal(client.set_config, config)
    seen["released"] = other.release()
    seen["nobody"] = refusal(client.set_empty_config)
    other.disconnect()
    client.handler = None
    client.disconnect()
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
