use super::*;

#[test]
fn jobs_are_read_with_whatever_is_in_their_names() {
    let job = read_queried_job("3|RUNNING|b3|n[1,3]|1795262362|1795262482|65534|None|a|b c").unwrap();
    assert_eq!(
        (job.id.as_str(), job.user, job.name.as_str()),
        ("3", 65_534, "a|b c")
    );
    assert_eq!(job.nodes, ["n1", "n3"]);
    assert_eq!(
        (job.start, job.end),
        (Some(Time(1_795_262_362)), Some(Time(1_795_262_482)))
    );
    assert_eq!(job.reservation.as_deref(), Some("b3"));
    let waiting = read_queried_job("12_[1-5]|PENDING|(null)||N/A|N/A|0|Resources|sweep").unwrap();
    assert_eq!(
        (waiting.state, waiting.end, waiting.reservation),
        (JobState::Waiting, None, None)
    );
    assert!(waiting.nodes.is_empty() && !waiting.put_off);
    let held = |reason: &str| read_queried_job(&format!("3|PENDING|b3||N/A|N/A|7|{reason}|a")).unwrap();
    assert!(held("JobHeldUser").put_off && !held("JobHeldAdmin").put_off);
    // That limit may be reached by the jobs of other parties.
    assert!(!held("QOSMaxJobsPerUserLimit").put_off);
    let free = held("Resources");
    assert!(!free.is_put_off("b3") && free.is_put_off("b4"));
    for wrong in [
        "",
        "3|RUNNING|b3|n1|5|6|0|None",
        "3|RUNNING|b3|n[|5|6|0|None|a",
        "3|RUNNING|b3|n1|tomorrow|6|0|None|a",
        "3|RUNNING|b3|n1|5|6|nobody|None|a",
    ] {
        assert_eq!(read_queried_job(wrong), None, "{wrong}");
    }
}

#[test]
fn a_record_lasts_until_the_next_mark_at_the_beginning_of_a_line() {
    let read = |text: &str| read_each_queried_record("squeue", text, "M|", |record| Some(record.to_owned()));
    assert_eq!(
        read("M|1 a\nM|2\n7 M|b\nM |\nM|3\n").unwrap(),
        ["1 a", "2\n7 M|b\nM |", "3"]
    );
    assert_eq!(read("\n").unwrap(), [""; 0]);
    assert!(read("slurm says something else\nM|1").is_err());
    assert!(mark_of_query() != mark_of_query());
}

#[test]
fn gpus_of_all_kinds_are_counted_among_generic_resources() {
    for (field, gpus) in [
        ("(null)", Some(0)),
        ("gpu:2", Some(2)),
        ("fpga:1,gpu:tesla:4(S:0,1),gpu:a100:1(S:1)", Some(5)),
        ("gpu:many", None),
        ("gpu,gpus:8", Some(1)),
    ] {
        assert_eq!(read_queried_gpus(field), gpus, "{field}");
    }
}

#[test]
fn nodes_are_read_with_the_first_line_of_their_reason() {
    let node = read_queried_node("n2|drained*|2/0/4/4|two\nlines | pipe").unwrap();
    assert_eq!(
        (
            node.name.as_str(),
            node.state.as_str(),
            node.silent,
            node.cpus,
            node.reason.as_deref()
        ),
        ("n2", "drained", true, (2, 4), Some("two"))
    );
    let node = read_queried_node("n1|idle~|0/4/0/4|none").unwrap();
    assert_eq!(
        (node.state.as_str(), node.silent, node.reason),
        ("idle", false, None)
    );
    for wrong in ["", "n1|idle", "n1|idle|0/4/0|none", "n1|idle|a/4/0/4|none"] {
        assert_eq!(read_queried_node(wrong), None, "{wrong}");
    }
}

#[test]
fn the_start_of_a_controller_is_read_from_its_configuration() {
    let shown = "Configuration data as of 1795343742\nBatchStartTimeout       = 10 sec\n\
                 BOOT_TIME               = 1795343734\nBurstBufferType         = (null)\n";
    assert_eq!(read_queried_boot_time(shown), Some(Time(1_795_343_734)));
    assert_eq!(read_queried_controller_time(shown), Some(Time(1_795_343_742)));
    assert_eq!(read_queried_boot_time("BOOT_TIME = N/A\n"), None);
    let down = "Slurmctld(primary) at vm is DOWN\n";
    assert_eq!(
        (read_queried_boot_time(down), read_queried_controller_time(down)),
        (None, None)
    );
}

#[test]
fn an_exit_is_a_status_or_a_signal() {
    assert_eq!(read_queried_exit_status("1280                \n"), Some(5));
    assert_eq!(read_queried_exit_status("9"), Some(137));
    assert_eq!(
        (read_queried_exit_status("0"), read_queried_exit_status("5:0")),
        (Some(0), None)
    );
}

#[test]
fn a_word_that_nobody_knows_is_no_end() {
    assert!(!JobState::of("LEVITATING").is_final());
    assert!(JobState::of("NODE_FAIL").is_final());
}

#[test]
fn reservations_are_read_by_their_keys() {
    let record = "b1 StartTime=100 EndTime=220 Duration=00:02:00 Nodes=n[3-4] NodeCnt=2 CoreCnt=8 \
                Features=(null) PartitionName=(null) Flags=SPEC_NODES TRES=cpu=8 Users=nobody Groups=(null)";
    let row = read_queried_reservation(record).unwrap();
    assert_eq!(row.interval, Interval::new(Time(100), Time(220)));
    assert_eq!(
        (row.nodes.join(" ").as_str(), row.users.as_str()),
        ("n3 n4", "nobody")
    );
    assert_eq!((row.repeats, row.floats, row.may_end_early), (None, false, false));
    assert_eq!(
        read_queried_reservation("b1 StartTime=soon EndTime=220 Nodes=n1 Users=a Flags="),
        None
    );
}

#[test]
fn flags_of_a_site_say_when_a_reservation_has_its_nodes() {
    let read = |end: &str, rest: &str| {
        let record =
            format!("a StartTime=100 EndTime={end} Duration=00:10:00 {rest} Users=root Groups=(null)");
        read_queried_reservation(&record).unwrap()
    };
    // As Slurm 22.05 writes them.
    let daily = read(
        "700",
        "Nodes=n1 NodeCnt=1 Flags=DAILY,REPLACE_DOWN,PURGE_COMP=00:05:00 TRES=cpu=4",
    );
    assert_eq!(
        (daily.repeats, daily.may_end_early),
        (Some(Recurrence::Daily), true)
    );
    let floating = read("700", "Nodes=n1 NodeCnt=1 Flags=SPEC_NODES,TIME_FLOAT TRES=cpu=4");
    assert!(floating.floats && floating.repeats.is_none());
    let licences = read(
        "700",
        "Nodes=(null) NodeCnt=0 CoreCnt=0 Flags=ANY_NODES TRES=(null)",
    );
    assert!(licences.nodes.is_empty());
    let cores = read("700", "Nodes=n[1-2] NodeCnt=2 CoreCnt=2 Flags= TRES=cpu=2");
    assert_eq!(cores.nodes, ["n1", "n2"], "whole nodes");
    for end in ["31536100", "UNLIMITED"] {
        let row = read(end, "Nodes=n1 Flags=SPEC_NODES");
        assert_eq!(row.interval, Interval::new(Time(100), Time::MAX), "{end}");
    }
    assert_eq!(read("31536099", "Nodes=n1 Flags=").interval.end, Time(31_536_099));
}

#[test]
fn limits_are_read_in_every_length() {
    assert_eq!(read_queried_limit("infinite"), Some(None));
    assert_eq!(read_queried_limit("1-00:00:00"), Some(Some(86_400)));
    assert_eq!(read_queried_limit("2:03:04"), Some(Some(7_384)));
    assert_eq!(read_queried_limit("30:00"), Some(Some(1_800)));
    assert_eq!(read_queried_limit("whole day"), None);
}
