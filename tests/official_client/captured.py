"""A stateful profile of captures, for both clients."""

import argparse

from trex.astf.api import ASTFCapInfo, ASTFCmdDelay, ASTFIPGen, ASTFIPGenDist, ASTFProfile


class Captured:
    """The profile."""

    def get_profile(self, tunables, **kwargs):
        """Captures, with flows a second or shares of the bytes."""
        parser = argparse.ArgumentParser()
        parser.add_argument("--files", default="")
        parser.add_argument("--delay", type=int, default=0)
        parser.add_argument("--mtu", type=int, default=0)
        parser.add_argument("--percent", type=float, default=None)
        options = parser.parse_args(tunables)
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        return ASTFProfile(
            default_ip_gen=ip_gen,
            cap_list=[
                ASTFCapInfo(
                    file=file,
                    cps=None if options.percent else 2.5,
                    l7_percent=options.percent,
                    port=8000 + number,
                    limit=5,
                    tg_name=f"group{number % 2}",
                )
                for number, file in enumerate(options.files.split(","))
            ],
            s_delay=ASTFCmdDelay(options.delay) if options.delay else None,
            udp_mtu=options.mtu or None,
        )


def register():
    """For the loaders."""
    return Captured()
