"""Three classes of service, told by the DSCP of their packets, with a TTL of their own.

It tests queues of a device. What must hold: under load the classes get what their queues promise; see the
template groups.

Run it:  allosaur run classes_of_service -t ttl=5 -d 10 --local
Tunables: ttl (1 to 127), rate (connections a second of each class at multiplier 1).
"""

from allosaur import (
    ASTFAssociationRule,
    ASTFGlobalInfoPerTemplate,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)

CLASSES = {"best effort": 0, "assured": 26, "expedited": 46}


class ClassesOfService:
    """The tunables ip.tos and ip.ttl of templates."""

    def get_profile(self, ttl=64, rate=1):
        """Return the profile."""
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        templates = []
        for port, (name, dscp) in enumerate(CLASSES.items(), 8000):
            client, server = ASTFProgram(), ASTFProgram()
            client.send(b"GET / HTTP/1.1\r\n\r\n")
            client.recv(8000)
            server.recv(18)
            server.send(b"HTTP/1.1 200 OK\r\n\r\n", size=8000, fill="*")
            info = ASTFGlobalInfoPerTemplate()
            info.ip.tos = dscp << 2
            info.ip.ttl = ttl
            templates.append(
                ASTFTemplate(
                    client_template=ASTFTCPClientTemplate(
                        program=client, ip_gen=ip_gen, port=port, cps=rate, glob_info=info
                    ),
                    server_template=ASTFTCPServerTemplate(
                        program=server, assoc=ASTFAssociationRule(port), glob_info=info
                    ),
                    tg_name=name,
                )
            )
        return ASTFProfile(default_ip_gen=ip_gen, templates=templates)


def register():
    return ClassesOfService()
