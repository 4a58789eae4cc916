//! Jobs that are isolated, hostile ones among them: what they reach, how they are told to end, and what is left of them.

use std::os::unix::net::UnixListener;

use domain::catalogue::{CheckpointSignal, Isolation};
use execution::{PieceSpec, SaveWork, StagedInput};

use super::*;

pub(super) fn isolated(text: &str, seconds: i64) -> JobSpec {
    JobSpec {
        isolation: Some(Isolation::default()),
        ..script(text, seconds)
    }
}

/// The processes of this machine with these words in their command line: in whatever way they were started, it is theirs.
pub(super) fn with_words(words: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if command.contains(words) && !command.contains("bespeak supervise") {
            found.push(command);
        }
    }
    found
}

#[test]
fn it_has_its_folder_its_inputs_and_the_programs_of_the_system() {
    let place = TestFolder::new();
    fs::write(place.path("words.txt"), "a word\n").unwrap();
    fs::write(place.path("shared.txt"), "shared\n").unwrap();
    fs::set_permissions(place.path("shared.txt"), PermissionsExt::from_mode(0o444)).unwrap();
    // A variable that the library adds by which the tests run at another time.
    let names = "env | cut -d= -f1 | grep -v FAKETIME | sort | tr '\\n' ' '";
    let text = format!(
        "cat words.txt shared.txt; pwd; echo $HOME $TMPDIR; {names}; echo x > made; echo y > /tmp/t; cat \"$TMPDIR/t\"; \
         echo z > /dev/shm/s; cat /dev/shm/s; ls / | tr '\\n' ' '; exit 3"
    );
    let mut job = isolated(&text, 600);
    job.inputs = vec![place.path("words.txt"), place.path("shared.txt")];
    let end = run(&place, &job);
    let said = place.output(&job, Stream::Out);
    assert_eq!(
        end.outcome,
        RunOutcome::Failed { exit: 3 },
        "{said} {}",
        place.output(&job, Stream::Err)
    );
    let mut lines = said.lines();
    let mut next = || lines.next().unwrap_or_default();
    assert_eq!(
        [next(), next(), next(), next()],
        ["a word", "shared", "/work", "/work /tmp"]
    );
    let variables = "BESPEAK_AGREEMENT BESPEAK_NODES BESPEAK_SLOT_END HOME LANG PATH PWD TMPDIR y";
    assert_eq!([next(), next()], [variables, "z"]);
    let known = [
        "bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr", "work",
    ];
    assert!(
        next().split_whitespace().all(|name| known.contains(&name)),
        "{said}"
    );
    assert_eq!(
        fs::read_to_string(place.record(&job, "work/made")).unwrap(),
        "x\n"
    );
}

#[test]
fn it_reaches_nothing_that_is_not_its_own() {
    let place = TestFolder::new();
    let secret = format!("secret-{}", Uuid::now_v7());
    for name in ["operator.key", "bespeak.db", "theirs.txt"] {
        fs::write(place.path(name), &secret).unwrap();
    }
    let mut shared = isolated("", 600);
    fs::write(place.path("shared.txt"), &secret).unwrap();
    fs::set_permissions(place.path("shared.txt"), PermissionsExt::from_mode(0o444)).unwrap();
    shared.inputs = vec![place.path("shared.txt")];
    let socket = UnixListener::bind(place.path("socket")).unwrap();
    socket.set_nonblocking(true).unwrap();
    let others = TcpListener::bind("127.0.0.1:0").unwrap();
    others.set_nonblocking(true).unwrap();
    // A process of the same user, as the service is: it is neither seen, nor read, nor signalled.
    let mut service = Command::new("sleep")
        .arg("1000")
        .env("SECRET", &secret)
        .spawn()
        .unwrap();
    let folder = place.folder.path().display();
    let (service_pid, port) = (service.id(), others.local_addr().unwrap().port());
    let text = format!(
        "exec 2>&1
        for name in operator.key bespeak.db theirs.txt; do
            cat {folder}/$name && echo reached $name
            ln {folder}/$name /work/$name.link && echo linked $name
            ln -s {folder}/$name /work/$name.symlink && cat /work/$name.symlink && echo followed $name
            echo changed > {folder}/$name && echo wrote $name
        done
        cat /proc/{service_pid}/environ /proc/{service_pid}/mem && echo reached the process
        kill -TERM {service_pid} && echo signalled
        ls /proc | grep -x {service_pid} && echo saw it
        ls {folder} /root /home /var /run /sys /etc/shadow && echo reached folders
        for d in /proc/[0-9]*/root /proc/self/fd/*; do ls $d/root && echo reached $d; done
        perl -MIO::Socket::UNIX -e 'exit !IO::Socket::UNIX->new(Peer => \"{folder}/socket\")' && echo reached the socket
        perl -MIO::Socket::INET -e 'exit !IO::Socket::INET->new(PeerAddr => \"127.0.0.1:{port}\")' && echo reached the network
        echo 45 > /proc/sys/fs/lease-break-time && echo reached the machine
        echo 1 > /proc/sysrq-trigger && echo reached the machine
        find /proc/sys /proc/irq /proc/bus -type f -writable 2> /dev/null | head -1 | grep . && echo reached the machine
        echo x > /usr/bin/x && echo wrote a program
        echo x > /x && echo wrote the root
        chmod u+w shared.txt; echo changed > shared.txt; rm -f shared.txt; cat shared.txt
        grep NoNewPrivs /proc/self/status; grep CapEff /proc/self/status
        exit 0"
    );
    shared.arguments = vec!["-c".into(), text];
    let end = run(&place, &shared);
    let said = place.output(&shared, Stream::Out);
    let alive = service.try_wait().unwrap().is_none();
    service.kill().unwrap();
    service.wait().unwrap();
    assert_eq!(end.outcome, RunOutcome::Completed, "{said}");
    let reached = ["reached", "linked", "followed", "wrote", "signalled", "saw it"];
    let reached: Vec<_> = said
        .lines()
        .filter(|line| reached.iter().any(|reached| line.starts_with(reached)))
        .collect();
    assert_eq!(reached, [""; 0], "{said}");
    assert_eq!(
        said.matches(&secret).count(),
        1,
        "its input and nothing else: {said}"
    );
    assert!(
        said.contains("NoNewPrivs:\t1") && said.contains("CapEff:\t0000000000000000"),
        "{said}"
    );
    assert!(alive, "{said}");
    for name in ["operator.key", "bespeak.db", "theirs.txt", "shared.txt"] {
        assert_eq!(fs::read_to_string(place.path(name)).unwrap(), secret, "{name}");
    }
    assert!(socket.accept().is_err() && others.accept().is_err());
}

#[test]
fn calls_that_administer_the_machine_fail_and_namespaces_cannot_be_made() {
    let place = TestFolder::new();
    // add_key, bpf, mount and io_uring_setup, by their numbers on this processor.
    let numbers = [
        libc_call("add_key"),
        libc_call("bpf"),
        libc_call("mount"),
        libc_call("io_uring_setup"),
    ];
    let numbers = numbers.map(|number| number.to_string()).join(", ");
    let text = format!(
        "perl -e 'for ({numbers}) {{ syscall($_, 0, 0, 0, 0, 0); print $! + 0, \" \" }}'; \
         unshare --user true 2> /dev/null || echo none"
    );
    let job = isolated(&text, 600);
    run(&place, &job);
    let denied = rustix::io::Errno::PERM.raw_os_error().to_string();
    let said = place.output(&job, Stream::Out);
    assert_eq!(
        said,
        format!("{denied} {denied} {denied} {denied} none\n"),
        "{}",
        place.output(&job, Stream::Err)
    );
}

/// The number of a system call.
fn libc_call(name: &str) -> i64 {
    let (x86, other) = match name {
        "add_key" => (248, 217),
        "bpf" => (321, 280),
        "mount" => (165, 40),
        "io_uring_setup" => (425, 425),
        _ => unreachable!("{name}"),
    };
    if cfg!(target_arch = "x86_64") { x86 } else { other }
}

#[test]
fn nothing_of_it_is_left_after_its_slot_however_it_hides() {
    let place = TestFolder::new();
    let words = format!("1000.{}", Uuid::now_v7().as_u128() % 1_000_000_007);
    let text = format!(
        "(sleep {words} &) &
        setsid sleep {words} &
        env -i setsid sleep {words} &
        sleep {words} & kill -STOP $!
        cp /bin/sleep gone; ./gone {words} & sleep 0.1; rm gone
        perl -e 'my $fd = syscall({memfd}, my $n = \"hidden\", 0); open my $o, \">&=\", $fd; open my $i, \"<\", \"/bin/sleep\";
            binmode $_ for $o, $i; local $/; my $b = <$i>; print $o $b; close $i; $o->flush;
            if (!fork) {{ exec {{\"/proc/self/fd/$fd\"}} \"hidden\", \"{words}\" }} exit' &
        trap '' TERM INT HUP
        touch ready
        while :; do sleep {words}; done",
        memfd = if cfg!(target_arch = "x86_64") { 319 } else { 279 },
    );
    let job = isolated(&text, 600);
    let executor = place.executor();
    executor.start(&job).unwrap();
    wait_for("its processes", || {
        executor.poll(job.run()).unwrap();
        let found = with_words(&words)
            .into_iter()
            .filter(|with_word| !with_word.contains("trap"))
            .count();
        (place.record(&job, "work/ready").exists() && found >= 6).then_some(())
    });
    executor.keep_until(job.run(), now()).unwrap();
    assert_eq!(end(&executor, &job).outcome, RunOutcome::Killed);
    assert_eq!(with_words(&words), [""; 0]);
}

#[test]
fn a_program_that_ends_leaves_nothing_running() {
    let place = TestFolder::new();
    let words = format!("1000.{}", Uuid::now_v7().as_u128() % 1_000_000_007);
    let job = isolated(
        &format!("env -i setsid sleep {words} > /dev/null 2>&1 & sleep 0.1"),
        600,
    );
    assert_eq!(run(&place, &job).outcome, RunOutcome::Completed);
    assert_eq!(with_words(&words), [""; 0]);
}

#[test]
fn signals_reach_its_program_and_its_exit_status_is_known() {
    let place = TestFolder::new();
    let ready = |job: &JobSpec| {
        let executor = place.executor();
        executor.start(job).unwrap();
        wait_for("start", || {
            executor.poll(job.run()).unwrap();
            place.record(job, "work/ready").exists().then_some(())
        });
        executor
    };
    let wait = "touch ready; while :; do sleep 0.05; done";
    let trapping = |signal: &str| format!("trap 'echo told; exit 0' {signal}; {wait}");
    // It may make a group or a session of its own, as `timeout` does.
    let own = |command: &str| format!("exec {command} sh -c \"{}\"", trapping("TERM"));
    for (text, signal) in [
        (trapping("USR1"), CheckpointSignal::Usr1),
        (trapping("TERM"), CheckpointSignal::Term),
        (own("timeout 100"), CheckpointSignal::Term),
        (own("setsid"), CheckpointSignal::Term),
    ] {
        // A busy machine may take long to run it, so that it has more time than a job that is stopped.
        let save = SaveWork {
            signal,
            grace: 600 * MICROS_PER_SECOND,
        };
        let told = JobSpec {
            piece: Some(PieceSpec {
                number: 1,
                of: 2,
                save: Some(save),
            }),
            ..isolated(&text, 6_000)
        };
        let executor = ready(&told);
        executor.keep_until(told.run(), now() + save.grace).unwrap();
        let ended = end(&executor, &told);
        let record = fs::read_to_string(place.record(&told, "isolation")).unwrap();
        assert_eq!(
            ended.outcome,
            RunOutcome::Checkpointed,
            "{text}: {ended:?} {record}"
        );
        // `timeout` passes on the signal that its program gets as well.
        let said = place.output(&told, Stream::Out);
        assert!(
            matches!(said.as_str(), "told\n" | "told\ntold\n"),
            "{text}: {said:?}"
        );
    }
    let stopped = isolated(wait, 600);
    let executor = ready(&stopped);
    executor.stop(stopped.run()).unwrap();
    assert_eq!(end(&executor, &stopped).outcome, RunOutcome::Terminated);

    for (text, exit) in [("exit 3", 3), ("kill -SEGV $$", 139), ("kill -9 $$", 137)] {
        assert_eq!(
            run(&place, &isolated(text, 600)).outcome,
            RunOutcome::Failed { exit },
            "{text}"
        );
    }

    let absent = JobSpec {
        program: "/usr/bin/no-such-program".into(),
        ..isolated("", 600)
    };
    assert_eq!(run(&place, &absent).outcome, RunOutcome::Failed { exit: 127 });
}

#[test]
fn its_exit_status_is_known_after_its_supervisor_was_killed() {
    let place = TestFolder::new();
    let job = isolated("touch ready; while [ ! -e go ]; do sleep 0.05; done; exit 3", 600);
    let executor = place.executor();
    executor.start(&job).unwrap();
    wait_for("start", || {
        place.record(&job, "work/ready").exists().then_some(())
    });
    kill_process(place.supervisor(&job).unwrap(), Signal::KILL).unwrap();
    fs::write(place.record(&job, "work/go"), "").unwrap();
    assert_eq!(end(&executor, &job).outcome, RunOutcome::Failed { exit: 3 });
}

#[test]
fn one_that_cannot_be_isolated_is_lost_and_that_is_no_fault_of_its_program() {
    let place = TestFolder::new();
    let mut job = isolated("exit 0", 600);
    job.isolation = Some(Isolation {
        visible: vec![place.path("absent")],
        network: false,
    });
    assert_eq!(run(&place, &job).outcome, RunOutcome::Lost);
    assert!(place.output(&job, Stream::Err).contains("absent"));
}

#[test]
fn it_has_what_its_application_shows_it_and_the_network_where_that_says_so() {
    let place = TestFolder::new();
    let others = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = others.local_addr().unwrap().port();
    fs::create_dir(place.path("data")).unwrap();
    fs::write(place.path("data/words"), "seen\n").unwrap();
    let data = place.path("data");
    let text = format!(
        "cat {0}/words; echo changed > {0}/words || echo kept; \
         perl -MIO::Socket::INET -e 'exit !IO::Socket::INET->new(PeerAddr => \"127.0.0.1:{port}\")' && echo connected",
        data.display()
    );
    let mut job = isolated(&text, 600);
    job.isolation = Some(Isolation {
        visible: vec![data],
        network: true,
    });
    run(&place, &job);
    assert_eq!(place.output(&job, Stream::Out), "seen\nkept\nconnected\n");
    // A program outside of the system's folders is seen, too.
    let program = place.path("program");
    fs::write(&program, "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let own = JobSpec {
        program,
        arguments: Vec::new(),
        ..isolated("", 600)
    };
    assert_eq!(run(&place, &own).outcome, RunOutcome::Completed);
    assert_eq!(place.output(&own, Stream::Out), "ran\n");
}

#[test]
fn a_job_has_no_open_files_of_the_service() {
    let place = TestFolder::new();
    // As a service has it whose shell has left a file open: what the executor starts inherits it.
    let inherited = rustix::fs::memfd_create("inherited", rustix::fs::MemfdFlags::empty()).unwrap();
    for isolation in [None, Some(Isolation::default())] {
        let job = JobSpec {
            isolation,
            ..script("ls -l /proc/$$/fd", 600)
        };
        run(&place, &job);
        let said = place.output(&job, Stream::Out);
        assert!(
            said.contains(".stdout.pipe") && !said.contains("inherited"),
            "{said}"
        );
        assert_eq!(
            said.lines().filter(|line| line.contains("->")).count(),
            3,
            "{said}"
        );
    }
    drop(inherited);
}

#[test]
fn a_second_name_of_a_file_is_no_output() {
    let place = TestFolder::new();
    fs::write(place.path("operator.key"), "secret").unwrap();
    let text = format!(
        "ln {} key; echo own > own; echo twice > one; ln one two",
        place.path("operator.key").display()
    );
    // A trusted application can make such a name, since it is not isolated.
    let job = script(&text, 600);
    assert_eq!(run(&place, &job).outcome, RunOutcome::Completed);
    let folder = place.executor().folder(job.run());
    let names: Vec<_> = folder
        .output_files()
        .unwrap()
        .into_iter()
        .map(|file| file.name)
        .collect();
    assert_eq!(names, ["own"]);
    assert!(folder.open_output(&OutputFile::File("key".to_owned())).is_err());
}

#[test]
fn a_second_name_of_a_file_is_an_output_of_a_job_that_cannot_name_others() {
    let place = TestFolder::new();
    let job = isolated("echo result > result; ln result latest", 60);
    assert_eq!(run(&place, &job).outcome, RunOutcome::Completed);
    let written = place.executor().folder(job.run()).output_files().unwrap();
    let names: Vec<_> = written.into_iter().map(|file| file.name).collect();
    assert_eq!(names, ["latest", "result"]);
}

#[test]
fn a_file_that_is_sent_afterwards_is_a_copy_that_it_may_change() {
    let place = TestFolder::new();
    let shared = place.path("reference");
    fs::write(&shared, "as it was").unwrap();
    fs::set_permissions(&shared, PermissionsExt::from_mode(0o444)).unwrap();
    let staged = |returns| StagedInput {
        name: "reference".to_owned(),
        from: Some(shared.clone()),
        bytes: 9,
        returns,
    };
    for (returns, left) in [(true, "changed\n"), (false, "as it was")] {
        let mut job = isolated("chmod u+w reference; echo changed > reference; exit 0", 60);
        job.staged = vec![staged(returns)];
        assert_eq!(run(&place, &job).outcome, RunOutcome::Completed);
        assert_eq!(
            fs::read_to_string(place.record(&job, "work/reference")).unwrap(),
            left
        );
        assert_eq!(fs::read_to_string(&shared).unwrap(), "as it was");
    }
}

#[test]
fn its_processes_are_known_by_their_namespace_whatever_it_does_to_the_first_one() {
    let place = TestFolder::new();
    let words = format!("1000.{}", Uuid::now_v7().as_u128() % 1_000_000_007);
    let job = isolated(
        &format!("env -i setsid sleep {words} & touch ready; sleep {words}"),
        600,
    );
    let executor = place.executor();
    executor.start(&job).unwrap();
    wait_for("its processes", || {
        executor.poll(job.run()).unwrap();
        (place.record(&job, "work/ready").exists() && with_words(&words).len() >= 4).then_some(())
    });
    // As if the tool had been ended from inside: its leader goes, and the namespace stays.
    let claim: serde_json::Value =
        serde_json::from_slice(&fs::read(place.record(&job, "claim.json")).unwrap()).unwrap();
    let leader = Pid::from_raw(claim["process"]["pid"].as_i64().unwrap().try_into().unwrap()).unwrap();
    kill_process(leader, Signal::KILL).unwrap();
    // That is no fault of its program.
    assert_eq!(end(&executor, &job).outcome, RunOutcome::Lost);
    assert_eq!(with_words(&words), [""; 0]);
}
