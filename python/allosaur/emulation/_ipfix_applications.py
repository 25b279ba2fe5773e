"""Applications that records tell of: services of IANA's registry, whose number is that of their port."""

from __future__ import annotations

from typing import NamedTuple

_IANA_L4 = 3
"""The classification engine whose selectors are ports (RFC 6759, section 4.2)."""
_SERVICES = """
echo 7 Echo, discard 9 Discard, daytime 13 Daytime, ftp-data 20 File Transfer [Default Data], ftp 21
File Transfer [Control], ssh 22 The Secure Shell (SSH) Protocol, telnet 23 Telnet, smtp 25 Simple Mail
Transfer, time 37 Time, nicname 43 Who Is, tacacs 49 Login Host Protocol (TACACS), domain 53 Domain Name
Server, bootps 67 Bootstrap Protocol Server, tftp 69 Trivial File Transfer, gopher 70 Gopher, finger 79
Finger, http 80 World Wide Web HTTP, kerberos 88 Kerberos, iso-tsap 102 ISO-TSAP Class 0, pop3 110 Post
Office Protocol - Version 3, sunrpc 111 SUN Remote Procedure Call, auth 113 Authentication Service, sftp
115 Simple File Transfer Protocol, nntp 119 Network News Transfer Protocol, ntp 123 Network Time
Protocol, epmap 135 DCE endpoint resolution, netbios-ns 137 NETBIOS Name Service, netbios-ssn 139
NETBIOS Session Service, imap 143 Internet Message Access Protocol, snmp 161 SNMP, snmptrap 162
SNMPTRAP, xdmcp 177 X Display Manager Control Protocol, bgp 179 Border Gateway Protocol, irc 194
Internet Relay Chat Protocol, at-rtmp 201 AppleTalk Routing Maintenance, ipx 213 IPX, ldap 389
Lightweight Directory Access Protocol, svrloc 427 Server Location, https 443 http protocol over TLS/SSL,
snpp 444 Simple Network Paging Protocol, microsoft-ds 445 Microsoft-DS, kpasswd 464 kpasswd, isakmp 500
isakmp, syslog 514 Syslog, printer 515 spooler, router 520 Routing Information Protocol, uucp 540 uucpd,
rtsp 554 Real Time Streaming Protocol, submission 587 Message Submission, ipp 631 Internet Printing
Protocol, ldaps 636 ldap protocol over TLS/SSL, ldp 646 Label Distribution Protocol, rsync 873 rsync,
ftps 990 ftp protocol control over TLS/SSL, imaps 993 IMAP over TLS protocol, pop3s 995 POP3 over TLS
protocol, socks 1080 Socks, openvpn 1194 OpenVPN, ms-sql-s 1433 Microsoft-SQL-Server, l2tp 1701 Layer
Two Tunneling Protocol, radius 1812 RADIUS, nfs 2049 Network File System, mysql 3306 MySQL,
ms-wbt-server 3389 MS WBT Server, sip 5060 Session Initiation Protocol, postgresql 5432 PostgreSQL
Database
"""


class Application(NamedTuple):
    """A service: its name, the number that records have for it, and what it is."""

    name: str
    number: int
    description: str


def applications(count: int) -> list[Application]:
    """Return the first `count` of them, or all where they are fewer."""
    rows = (row.split(maxsplit=2) for row in _SERVICES.replace("\n", " ").split(","))
    found = [Application(name, _IANA_L4 << 24 | int(port), text) for name, port, text in rows]
    return found[:count]
