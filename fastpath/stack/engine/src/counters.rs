//! What an engine counted since it was made: names and meanings of /proc/net/snmp, snmp6 and netstat, so that
//! `nstat` users know them. Those without a namesake there are in the group `Hopscope`.

macro_rules! counters {
    ($($group:literal { $($(#[$doc:meta])* $field:ident $name:literal)* })*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Counters {
            $($($(#[$doc])* #[doc = concat!("`", $group, $name, "`")] pub $field: u64,)*)*
        }

        impl Counters {
            /// Group, name, value, in the order of the kernel's files.
            pub fn rows(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$($(($group, $name, self.$field),)*)*].into_iter()
            }
        }
    };
}

counters! {
    "Ip" {
        ip_in_receives "InReceives"
        ip_in_hdr_errors "InHdrErrors"
        ip_in_addr_errors "InAddrErrors"
        ip_in_unknown_protos "InUnknownProtos"
        ip_in_discards "InDiscards"
        ip_in_delivers "InDelivers"
        ip_out_requests "OutRequests"
        ip_out_discards "OutDiscards"
        ip_out_no_routes "OutNoRoutes"
        ip_reasm_timeout "ReasmTimeout"
        ip_reasm_reqds "ReasmReqds"
        ip_reasm_oks "ReasmOKs"
        ip_reasm_fails "ReasmFails"
        /// Datagrams that were sent in fragments, or not all of them; then the fragments.
        ip_frag_oks "FragOKs"
        ip_frag_fails "FragFails"
        ip_frag_creates "FragCreates"
    }
    "Icmp" {
        icmp_in_msgs "InMsgs"
        icmp_in_errors "InErrors"
        icmp_in_csum_errors "InCsumErrors"
        icmp_in_dest_unreachs "InDestUnreachs"
        icmp_in_time_excds "InTimeExcds"
        icmp_in_parm_probs "InParmProbs"
        icmp_in_echos "InEchos"
        icmp_in_echo_reps "InEchoReps"
        icmp_out_msgs "OutMsgs"
        icmp_out_rate_limit_global "OutRateLimitGlobal"
        icmp_out_rate_limit_host "OutRateLimitHost"
        icmp_out_dest_unreachs "OutDestUnreachs"
        icmp_out_time_excds "OutTimeExcds"
        icmp_out_parm_probs "OutParmProbs"
        icmp_out_echo_reps "OutEchoReps"
    }
    "Tcp" {
        tcp_active_opens "ActiveOpens"
        tcp_passive_opens "PassiveOpens"
        tcp_attempt_fails "AttemptFails"
        tcp_estab_resets "EstabResets"
        tcp_curr_estab "CurrEstab"
        tcp_in_segs "InSegs"
        tcp_out_segs "OutSegs"
        tcp_retrans_segs "RetransSegs"
        tcp_in_errs "InErrs"
        tcp_out_rsts "OutRsts"
        tcp_in_csum_errors "InCsumErrors"
    }
    "Udp" {
        udp_in_datagrams "InDatagrams"
        udp_no_ports "NoPorts"
        udp_in_errors "InErrors"
        udp_out_datagrams "OutDatagrams"
        udp_rcvbuf_errors "RcvbufErrors"
        udp_sndbuf_errors "SndbufErrors"
        udp_in_csum_errors "InCsumErrors"
        udp_mem_errors "MemErrors"
    }
    "TcpExt" {
        syncookies_sent "SyncookiesSent"
        syncookies_recv "SyncookiesRecv"
        syncookies_failed "SyncookiesFailed"
        embryonic_rsts "EmbryonicRsts"
        out_of_window_icmps "OutOfWindowIcmps"
        time_waited "TW"
        time_wait_overflow "TCPTimeWaitOverflow"
        time_wait_recycled "TWRecycled"
        paws_active "PAWSActive"
        paws_estab "PAWSEstab"
        delayed_acks "DelayedACKs"
        listen_overflows "ListenOverflows"
        listen_drops "ListenDrops"
        pure_acks "TCPPureAcks"
        sack_recovery "TCPSackRecovery"
        reno_recovery "TCPRenoRecovery"
        sack_reneging "TCPSACKReneging"
        sack_reorder "TCPSACKReorder"
        ts_reorder "TCPTSReorder"
        full_undo "TCPFullUndo"
        partial_undo "TCPPartialUndo"
        dsack_undo "TCPDSACKUndo"
        loss_undo "TCPLossUndo"
        lost_retransmit "TCPLostRetransmit"
        sack_failures "TCPSackFailures"
        loss_failures "TCPLossFailures"
        fast_retrans "TCPFastRetrans"
        slow_start_retrans "TCPSlowStartRetrans"
        timeouts "TCPTimeouts"
        loss_probes "TCPLossProbes"
        loss_probe_recovery "TCPLossProbeRecovery"
        spurious_rtos "TCPSpuriousRTOs"
        dsack_old_sent "TCPDSACKOldSent"
        dsack_ofo_sent "TCPDSACKOfoSent"
        dsack_recv "TCPDSACKRecv"
        dsack_ofo_recv "TCPDSACKOfoRecv"
        dsack_ignored_dubious "TCPDSACKIgnoredDubious"
        sack_discard "TCPSACKDiscard"
        abort_on_data "TCPAbortOnData"
        abort_on_close "TCPAbortOnClose"
        abort_on_memory "TCPAbortOnMemory"
        abort_on_timeout "TCPAbortOnTimeout"
        abort_on_linger "TCPAbortOnLinger"
        memory_pressures "TCPMemoryPressures"
        rcv_collapsed "TCPRcvCollapsed"
        ofo_queue "TCPOFOQueue"
        ofo_drop "TCPOFODrop"
        ofo_merge "TCPOFOMerge"
        challenge_ack "TCPChallengeACK"
        syn_challenge "TCPSYNChallenge"
        ack_skipped_syn_recv "TCPACKSkippedSynRecv"
        ack_skipped_paws "TCPACKSkippedPAWS"
        ack_skipped_seq "TCPACKSkippedSeq"
        ack_skipped_time_wait "TCPACKSkippedTimeWait"
        ack_skipped_challenge "TCPACKSkippedChallenge"
        win_probe "TCPWinProbe"
        keep_alive "TCPKeepAlive"
        to_zero_window_adv "TCPToZeroWindowAdv"
        from_zero_window_adv "TCPFromZeroWindowAdv"
        want_zero_window_adv "TCPWantZeroWindowAdv"
        rcvq_drop "TCPRcvQDrop"
        zero_window_drop "TCPZeroWindowDrop"
        backlog_drop "TCPBacklogDrop"
        req_q_full_drop "TCPReqQFullDrop"
        req_q_full_do_cookies "TCPReqQFullDoCookies"
        hystart_train_detect "TCPHystartTrainDetect"
        hystart_delay_detect "TCPHystartDelayDetect"
        orig_data_sent "TCPOrigDataSent"
        delivered "TCPDelivered"
        mtup_fail "TCPMTUPFail"
    }
    "Hopscope" {
        /// Cut, or not what its EtherType says.
        frames_malformed "FramesMalformed"
        /// For another host, or an EtherType that is not served.
        frames_foreign "FramesForeign"
        arp_in "ArpIn"
        arp_out "ArpOut"
        nd_in "NdIn"
        nd_out "NdOut"
        /// Not valid, about other hosts, from a router, or a redirect.
        nd_ignored "NdIgnored"
        /// Echo requests to groups, group membership queries.
        icmp_ignored "IcmpIgnored"
        neighbor_failed "NeighborFailed"
        neighbor_queue_drop "NeighborQueueDrop"
        neighbor_evicted "NeighborEvicted"
        /// A second link-layer address for a neighbour, which was not believed.
        neighbor_conflicts "NeighborConflicts"
        /// Another host says that it has an address of ours.
        address_conflicts "AddressConflicts"
        /// And was told in return that we have it.
        addresses_defended "AddressesDefended"
        /// TCP options that are cut or have a wrong length; the segment is processed without them.
        options_malformed "TcpOptionsMalformed"
        overlapping_fragments "OverlappingFragments"
        memory_limit_drop "MemoryLimitDrop"
        optimistic_acks "TcpOptimisticAcks"
        connections_of_other_engines "ForeignShare"
    }
}
