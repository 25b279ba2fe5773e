//! What TCP counts, by the names of BSD (`tcps_...`), which users of traffic generators know.

use crate::stats::counters;

counters! {
    /// Counters of one side of one template, by BSD's names without `tcps_`. All only grow.
    TcpCounters;
    /// Connections that were begun.
    connattempt,
    /// Connections that were accepted.
    accepts,
    /// Connections that came to be, on either side.
    connects,
    /// Connections that are gone, however they ended.
    closed,
    /// Segments whose round trip was timed.
    segstimed,
    /// Round trips that were measured.
    rttupdated,
    /// Acknowledgments that waited, and were sent when their time came.
    delack,
    /// Segments sent.
    sndtotal,
    /// Segments with nothing but data sent for the first time.
    sndpack,
    /// Bytes that the application gave to be sent.
    sndbyte,
    /// Bytes of data sent for the first time.
    sndbyte_ok,
    /// Segments without data that have SYN, FIN or RST.
    sndctrl,
    /// Segments that only acknowledge.
    sndacks,
    /// Segments that arrived.
    rcvtotal,
    /// Segments with data that arrived in order.
    rcvpack,
    /// Bytes that arrived in order.
    rcvbyte,
    /// Acknowledgments of something new.
    rcvackpack,
    /// Bytes that were acknowledged.
    rcvackbyte,
    /// Bytes that were acknowledged, the sequence numbers of SYN and FIN among them.
    rcvackbyte_of,
    /// Segments with data that arrived together with the one before and were handled with it.
    rcvoffloads,
    /// Segments with data that took the short way.
    preddat,
    /// Acknowledgments that took the short way.
    predack,
    /// Connections that did not end as they should: reset by either side, or given up. Not those
    /// of `conndrops`.
    drops,
    /// Connections that we asked for and that never got an answer, or were refused.
    conndrops,
    /// Connections given up because nothing was acknowledged.
    timeoutdrop,
    /// Times that the retransmission timer ran out.
    rexmttimeo,
    /// The same, for a SYN.
    rexmttimeo_syn,
    /// Times that the persist timer ran out.
    persisttimeo,
    /// Times that the keepalive timer ran out.
    keeptimeo,
    /// Keepalive probes sent.
    keepprobe,
    /// Connections given up because the peer was silent, or did not come to be in time.
    keepdrops,
    /// Connections that were there when a test ended and were cut off. Neither `drops` nor
    /// `conndrops` count them.
    testdrops,
    /// Segments with data of which some was sent before.
    sndrexmitpack,
    /// Bytes sent again.
    sndrexmitbyte,
    /// Window probes sent.
    sndprobe,
    /// Segments with the urgent bit sent: always 0, nothing is urgent here.
    sndurg,
    /// Segments that only open the window: always 0, ours is open again with each acknowledgment.
    sndwinup,
    /// Segments of its connections with a wrong checksum: counted by who reads frames.
    rcvbadsum,
    /// The same with a wrong header length.
    rcvbadoff,
    /// The same, too short for a header.
    rcvshort,
    /// Segments whose data had all arrived before.
    rcvduppack,
    /// Their bytes.
    rcvdupbyte,
    /// Segments of whose data some had arrived before.
    rcvpartduppack,
    /// Those bytes.
    rcvpartdupbyte,
    /// Segments out of order for which there was no room.
    rcvoopackdrop,
    /// Their bytes.
    rcvoobytesdrop,
    /// Segments out of order.
    rcvoopack,
    /// Their bytes.
    rcvoobyte,
    /// Segments with data beyond the window.
    rcvpackafterwin,
    /// Those bytes.
    rcvbyteafterwin,
    /// Segments with data that arrived after the application had closed. It is taken all the
    /// same: the peer may still have something to say (half close).
    rcvafterclose,
    /// Window probes that arrived.
    rcvwinprobe,
    /// Duplicate acknowledgments while something was under way.
    rcvdupack,
    /// Acknowledgments of what was never sent.
    rcvacktoomuch,
    /// Segments that only open the window.
    rcvwinupd,
    /// Segments dropped for their old timestamp.
    pawsdrop,
    /// Connections given up because the window stayed closed.
    persistdrop,
    /// SYNs that made no sense.
    badsyn,
    /// Times that memory for reassembly was taken.
    reasalloc,
    /// Times that it was given back.
    reasfree,
    /// Reassemblies that were never longer than 4 pieces.
    reas_hist_4,
    /// Than 16.
    reas_hist_16,
    /// Than 100.
    reas_hist_100,
    /// Longer ones.
    reas_hist_other,
    /// Resets of others' segments that found no room on their port: counted by who sends them. What
    /// a connection says itself waits for room, and nothing is lost.
    nombuf,
    /// Times that loss was repaired with the help of SACK.
    sack_recovery_episode,
    /// Segments sent again with the help of SACK.
    sack_rexmits,
    /// Their bytes.
    sack_rexmit_bytes,
    /// SACK options that arrived.
    sack_rcv_blocks,
    /// SACK options sent.
    sack_send_blocks,
    /// SACK ranges that there was no room for.
    sack_sboverflow,
    /// Segments that met congestion (CE).
    ecn_ce,
    /// Segments that might have said so (ECT(0)).
    ecn_ect0,
    /// The same with the other code (ECT(1)): always 0, we say ECT(0).
    ecn_ect1,
    /// Connections with ECN.
    ecn_shs,
    /// Times that the congestion window went down because of ECN.
    ecn_rcwnd,
}
