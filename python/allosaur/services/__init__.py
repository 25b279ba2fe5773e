"""Services: small programs in the client that send packets out of a port and wait for answers.

ARP, ping, neighbor discovery and DHCP are here; a user writes others by the same means:

    class Hello(STLService):
        def get_filter_type(self):
            return HelloFilter

        def run(self, pipe):
            sent = yield pipe.async_tx_pkt(Ether() / IP() / UDP() / b"hello")
            packets = yield pipe.async_wait_for_pkt(time_sec=1)
            self.answered = bool(packets)

    client.create_service_ctx(port=0).run([Hello(), Hello()])

``_service`` is what a service is, ``_context`` runs many at once over one port, ``_schedule`` takes
turns between them. Here is no thread: a service is a generator, and waits by ``yield``.
"""
