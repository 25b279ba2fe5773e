"""HTTP over IPv6: the upper bits of addresses are given, the lower 32 come from the pools.

It tests devices with IPv6; the profile is the same for both, and start(ipv6=True) is not needed. What must
hold: as over IPv4.

Run it:  allosaur run http_ipv6 -d 10 --local
Tunables: clients and servers (the upper bits of their addresses).
"""

from allosaur import (
    ASTFGlobalInfo,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)


class HttpIpv6:
    """The tunables ipv6 on both sides."""

    def get_profile(self, clients="2001:db8:1::", servers="2001:db8:2::"):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        client, server = ASTFProgram(), ASTFProgram()
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        client.recv(1000)
        server.recv(18)
        server.send(b"HTTP/1.1 200 OK\r\n\r\n", size=1000, fill="6")
        sides = [ASTFGlobalInfo(), ASTFGlobalInfo()]
        for info in sides:
            info.ipv6.enable = 1
            info.ipv6.src_msb = clients
            info.ipv6.dst_msb = servers
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ip_gen),
            server_template=ASTFTCPServerTemplate(program=server),
        )
        return ASTFProfile(
            default_ip_gen=ip_gen,
            default_c_glob_info=sides[0],
            default_s_glob_info=sides[1],
            templates=template,
        )


def register():
    return HttpIpv6()
