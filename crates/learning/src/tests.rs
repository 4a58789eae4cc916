//! What the load of a machine is worth for predictions of real jobs on it: processes that calculate, beside others that keep every processor
//! busy in office hours of each day. Time is shortened: an hour of it is [`HOUR_LASTS`].

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use advisor::random::Random;
use domain::agreement::{Execution, RunOutcome};
use domain::clock::{MICROS_PER_SECOND, Micros};
use domain::past::{PastExecution, ResourceHour};
use prediction::{Knowledge, Machine};
use scheduler::prediction::{Ladder, Part, Reliability};
use scheduler::{Interval, Time};
use uuid::Uuid;

use super::machine_counters::{machine_condition_between, read_machine_counters};

const HOUR: i64 = 3_600;
const HOURS: i64 = 16 * 24;
const HOUR_LASTS: Duration = Duration::from_millis(900);

/// In one of so many hours there is a run: the samples count it as load, too.
const HOURS_A_RUN: i64 = 3;
const RESOURCE: &str = "local";

/// Turns of a loop that a run takes: at least, and below. It has to last longer than the time that a process which has just started
/// gets before others: some tenths of a second.
const TURNS: (i64, i64) = (200_000, 260_000);

/// Processes of others for each processor.
const OTHERS: u32 = 2;

/// Others' work on the machine, until it is dropped.
struct OtherWork(Vec<Child>);

impl OtherWork {
    fn on_every_processor() -> Self {
        Self(
            (0..OTHERS * processors())
                .map(|_| shell("while :; do :; done"))
                .collect(),
        )
    }
}

fn processors() -> u32 {
    let there = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(there).unwrap()
}

impl Drop for OtherWork {
    fn drop(&mut self) {
        for other in &mut self.0 {
            let _ = other.kill();
            let _ = other.wait();
        }
    }
}

fn shell(script: &str) -> Child {
    Command::new("sh").args(["-c", script]).spawn().unwrap()
}

fn is_office(hour: i64) -> bool {
    (9..18).contains(&hour.rem_euclid(24))
}

fn shortened(lasted: Duration) -> Micros {
    let micros = lasted.as_micros() * 3_600_000_000 / HOUR_LASTS.as_micros();
    Micros::try_from(micros).unwrap()
}

fn execution(started: Micros, run_time: Micros) -> PastExecution {
    let start = Time(started / MICROS_PER_SECOND);
    PastExecution {
        execution: Execution {
            agreement: Uuid::nil(),
            application: "loop".into(),
            version: None,
            arguments: Vec::new(),
            input_bytes: 0,
            output_bytes: 0,
            resource: RESOURCE.into(),
            nodes: 1,
            planned: Interval::of(start, HOUR),
            estimate: HOUR,
            queue_time: 0,
            run_time,
            transfer_in: 0,
            transfer_out: 0,
            moved_in: 0,
            moved_out: 0,
            outcome: RunOutcome::Completed,
            ended: started + run_time,
        },
        party: "physics".into(),
        agreed: started - 60 * MICROS_PER_SECOND,
    }
}

/// One hour, with a run in some, and the sample of it.
async fn hour(hour: i64, random: &mut Random) -> (Vec<PastExecution>, ResourceHour) {
    let _others = is_office(hour).then(OtherWork::on_every_processor);
    let begin = hour * HOUR * MICROS_PER_SECOND;
    let (began, before) = (Instant::now(), read_machine_counters().await);
    let mut runs = Vec::new();
    if hour % HOURS_A_RUN == 0 {
        let turns =
            TURNS.0 + i64::try_from(random.below(usize::try_from(TURNS.1 - TURNS.0).unwrap())).unwrap();
        let started = began.elapsed();
        let script = format!("i=0; while [ $i -lt {turns} ]; do i=$((i + 1)); done");
        assert!(shell(&script).wait().unwrap().success());
        let run_time = shortened(began.elapsed().saturating_sub(started));
        runs.push(execution(begin + shortened(started), run_time));
    }
    tokio::time::sleep(HOUR_LASTS.saturating_sub(began.elapsed())).await;
    let lasted = shortened(began.elapsed());
    let now = (lasted, read_machine_counters().await);
    let sample = ResourceHour {
        resource: RESOURCE.into(),
        start: Time(hour * HOUR),
        samples: 1,
        condition: machine_condition_between((0, before), now),
    };
    (runs, sample)
}

#[tokio::test]
#[ignore = "takes minutes, and needs the machine to itself: ./scripts/test release estimates"]
async fn the_load_of_the_machine_makes_no_prediction_of_real_jobs_worse() {
    let mut random = Random::new(1, &[1]);
    let (mut past, mut hours) = (Vec::new(), Vec::new());
    for number in 0..HOURS {
        let (runs, sample) = hour(number, &mut random).await;
        past.extend(runs);
        hours.push(sample);
    }
    let machine = Machine {
        nodes: processors(),
        counts_own_work: true,
        ..Machine::default()
    };
    let machines = [(RESOURCE.to_owned(), machine)].into_iter().collect();
    let setup = (machines, Some(Ladder::All));
    let known = Knowledge::of(&past, &hours, setup, Time(HOURS * HOUR));
    println!(
        "| statements | executions | in the 90 % interval (%) | its width (s) | pinball loss (s) |\n|---|---|---|---|---|"
    );
    let mut losses = Vec::new();
    for (name, wanted) in [("history alone", Ladder::History), ("with load", Ladder::Load)] {
        let mut all = known.reliabilities();
        let (_, reliability) = all.find(|(ladder, _)| *ladder == wanted).unwrap();
        let (_, held, width) = reliability.intervals()[0];
        let loss = Reliability::mean_loss(reliability);
        println!(
            "| {name} | {} | {:.1} | {width:.0} | {loss:.1} |",
            reliability.outcomes(),
            100.0 * held
        );
        losses.push(loss);
    }
    let weight = known.weights().find(|weight| weight.resource == RESOURCE);
    let weight = weight.map_or(0.0, |weight| weight.weights[Part::Load as usize].value());
    println!("weight of the load: {weight:.2}");
    // Where the load says nothing its weight goes down by itself.
    assert!(losses[1] < 1.02 * losses[0], "{losses:?}");
}
