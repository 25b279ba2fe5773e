//! What is counted of multicast, and what it means: IGMP and MLD have most counters in common, in
//! orders of their own.

use crate::counters::{CounterMeta, Severity};

/// Declares what is counted, and what each means: its name in the RPC, what it counts, of what, how bad it
/// is.
macro_rules! counts {
    ($($count:ident: $wire:literal, $help:literal, $unit:literal, $severity:ident;)*) => {
        /// What is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub(crate) enum Count {
            $($count,)*
        }

        /// What they mean, in their order.
        const ALL: &[CounterMeta] = &[$(CounterMeta {
            name: $wire,
            help: $help,
            unit: $unit,
            severity: Severity::$severity,
            zero: false,
        }),*];
    };
}

counts! {
    AddSource: "opsAddSG", "add mc (s,g) ", "ops", Info;
    RemoveSource: "opsRemoveSG", "remove mc (s,g) ", "ops", Info;
    AddSourceError: "opsAddErrSG", "error add mc (s,g) ", "ops", Error;
    RemoveSourceError: "opsRemoveErrSG", "error remove mc (s,g) ", "ops", Error;
    SourceAnswers: "pktRxSndReportsSGQuery", "(s,g)- query records", "pkts", Info;
    BlockReports: "pktRxSndReportsSGRemove", "(s,g)- remove records", "pkts", Info;
    AllowReports: "pktRxSndReportsSGAdd", "(s,g)- add records", "pkts", Info;
    ChangeToInclude: "pktRxSndReportsSGChangeToInclude", "(s,g)- change to include", "pkts", Info;
    Total: "pktRxTotal", "total IGMP messages received", "pkts", Info;
    TooShort: "pktRxTooshort", "received with too few bytes", "pkts", Error;
    BadTtl: "pktRxBadttl", "received with ttl other than 1", "pkts", Error;
    BadChecksum: "pktRxBadsum", "received with bad checksum", "pkts", Error;
    NoKey: "pktRxNoKey", "received igmp but can't find port,vlan keys", "pkts", Error;
    V1Queries: "pktRxv1Queries", "received IGMPv1/IGMPv2 queries", "pkts", Info;
    V2Queries: "pktRxv1v2Queries", "received IGMPv1/IGMPv2 queries", "pkts", Info;
    V3Queries: "pktRxv3Queries", "received IGMPv3 queries", "pkts", Info;
    BadQueries: "pktRxbadQueries", "received invalid queries", "pkts", Error;
    GeneralQueries: "pktRxgenQueries", "received general queries", "pkts", Info;
    GroupQueries: "pktRxgroupQueries", "received group queries", "pkts", Info;
    SourceQueries: "pktRxgsrQueries", "received group-source queries", "pkts", Info;
    SourceQueriesDropped: "pktRxgsrDropQueries", "dropped group-source queries", "pkts", Info;
    QueriesWhileAnswering: "pktRxquerieActiveTimer", "rcv querie while active timer", "pkts", Info;
    ReportsReceived: "pktRxReports", "received membership reports", "pkts", Info;
    NoRouterAlert: "pktRxNora", "received w/o Router Alert option ", "pkts", Info;
    ChangeReports: "pktSndAddRemoveReports", "explicit reports due to add/remove command", "pkts", Info;
    Answers: "pktRxSndReports", "sent membership reports", "pkts", Info;
    Add: "opsAdd", "add mc ", "ops", Info;
    Remove: "opsRemove", "remove mc ", "ops", Info;
    AddError: "opsAddErr", "add mc with error", "ops", Error;
    RemoveError: "opsRemoveErr", "remove mc with error ", "ops", Error;
    NoDesignator: "pktNoDesignatorClient", "No designator client with this MAC addr, igmp won't work with one clients assigned ", "pkts", Error;
    NoDesignatorAddress: "pktNoDesignatorClientIPv4", "The designator client has no valid IPv4 addr ", "pkts", Error;
    RateTooHigh: "opsRateIsTooHigh", "rate of multicast is too high, duration should be higher", "opts", Error;
}

/// How many there are.
pub(crate) const COUNTS: usize = ALL.len();

impl Count {
    /// What it means, in the words of IGMP; the table of MLD says where it has others.
    pub(crate) const fn meta(self) -> CounterMeta {
        ALL[self as usize]
    }
}

/// The counters of a family in their order; where its words are not those of [`Count::meta`], the name in
/// the RPC, what it counts, of what, how bad it is.
macro_rules! count_table {
    ($($count:ident $(: $wire:literal, $help:literal, $unit:literal, $severity:ident)?;)*) => {
        const COUNTERS: &'static [$crate::multicast::count::Count] =
            &[$($crate::multicast::count::Count::$count),*];
        const META: &'static [$crate::counters::CounterMeta] =
            &[$($crate::multicast::count::count_table!(@row $count $($wire, $help, $unit, $severity)?)),*];
    };
    (@row $count:ident) => {
        $crate::multicast::count::Count::$count.meta()
    };
    (@row $count:ident $wire:literal, $help:literal, $unit:literal, $severity:ident) => {
        $crate::counters::CounterMeta {
            name: $wire,
            help: $help,
            unit: $unit,
            severity: $crate::counters::Severity::$severity,
            zero: false,
        }
    };
}
pub(crate) use count_table;
