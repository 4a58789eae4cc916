//! The queue compared with plain EASY backfilling that only counts nodes, and the states that may never happen.

use std::collections::BTreeSet;

use scheduler::Seconds;

use super::{
    BatchJob, Cluster, Demand, DemandScale, NodeChoice, Promise, QueueOutcome, run_jobs_beside_promises,
};
use advisor::random::Random;

const NODES: u32 = 12;
const LIMIT_MAX: usize = 100;
const CASES: u64 = 150;
const CHOICES: [NodeChoice; 3] = [NodeChoice::Lowest, NodeChoice::BestFit, NodeChoice::Dedicated(4)];

fn cluster(lead: Seconds, choice: NodeChoice) -> Cluster {
    Cluster {
        nodes: NODES,
        lead,
        choice,
        measured: (0, 4_000),
    }
}

/// Jobs by submission; jobs with exact limits run up to them.
fn jobs(random: &mut Random, exact: bool) -> Vec<BatchJob> {
    let mut jobs: Vec<BatchJob> = (0..60)
        .map(|_| {
            let limit = 1 + random.below(LIMIT_MAX);
            let run = if exact { limit } else { 1 + random.below(limit) };
            BatchJob {
                submit: Seconds::try_from(random.below(1_500)).unwrap(),
                run: Seconds::try_from(run).unwrap(),
                limit: Seconds::try_from(limit).unwrap(),
                nodes: u32::try_from(1 + random.below(8)).unwrap(),
            }
        })
        .collect();
    jobs.sort_by_key(|job| job.submit);
    jobs
}

fn promises(random: &mut Random, seed: u64) -> Vec<Promise> {
    let demand = Demand {
        share: 25,
        scale: DemandScale::Jobs,
    };
    let models: Vec<BatchJob> = (0..20)
        .map(|_| BatchJob {
            submit: 0,
            run: 60 + Seconds::try_from(random.below(60)).unwrap(),
            limit: 200,
            nodes: u32::try_from(1 + random.below(3)).unwrap(),
        })
        .collect();
    demand.draw(seed, NODES, &models, (200, 1_800))
}

/// Node, begin, end and whether it is a slot, of all that was on the cluster; of jobs up to their limits or up to their ends.
fn uses(
    jobs: &[BatchJob],
    promises: &[Promise],
    outcome: &QueueOutcome,
    limits: bool,
) -> Vec<(u32, Seconds, Seconds, bool)> {
    let of_jobs = jobs.iter().zip(&outcome.jobs).flat_map(|(job, placed)| {
        let placed = placed.as_ref();
        let length = if limits { job.limit } else { job.run };
        placed.into_iter().flat_map(move |placed| {
            let of_node = move |node: &u32| (*node, placed.start, placed.start + length, false);
            placed.nodes.iter().map(of_node)
        })
    });
    let of_slots = promises
        .iter()
        .zip(&outcome.promises)
        .flat_map(|(promise, kept)| {
            let of_node = |node: &u32| (*node, promise.start, promise.end(), true);
            kept.nodes.iter().map(of_node)
        });
    let mut uses: Vec<_> = of_jobs.chain(of_slots).collect();
    uses.sort_unstable();
    uses
}

/// Begins by EASY backfilling of a cluster of nodes without names: O(events × queue × running).
fn plain_easy(jobs: &[BatchJob]) -> Vec<Seconds> {
    let mut begins: Vec<Option<Seconds>> = vec![None; jobs.len()];
    let mut times: BTreeSet<Seconds> = jobs.iter().map(|job| job.submit).collect();
    while let Some(now) = times.pop_first() {
        let mut head: Option<(Seconds, u32)> = None;
        for index in 0..jobs.len() {
            let job = &jobs[index];
            if job.submit > now || begins[index].is_some() {
                continue;
            }
            // Limits of running jobs and their nodes, as they are now.
            let mut running: Vec<(Seconds, u32)> = (0..jobs.len())
                .filter_map(|other| {
                    let begin = begins[other]?;
                    (begin + jobs[other].run > now).then_some((begin + jobs[other].limit, jobs[other].nodes))
                })
                .collect();
            running.sort_unstable();
            let mut free = NODES - running.iter().map(|(_, nodes)| nodes).sum::<u32>();
            let fits = job.nodes <= free;
            let ends_in_time = head.is_none_or(|(start, _)| now + job.limit <= start);
            let spare = head.map_or(0, |(_, spare)| spare);
            if fits && (ends_in_time || job.nodes <= spare) {
                if !ends_in_time {
                    head = head.map(|(start, spare)| (start, spare - job.nodes));
                }
                begins[index] = Some(now);
                times.insert(now + job.run);
            } else if head.is_none() {
                let mut start = now;
                for (end, nodes) in running {
                    if free >= job.nodes && end > start {
                        break;
                    }
                    free += nodes;
                    start = end;
                }
                head = Some((start, free - job.nodes));
            }
        }
    }
    begins.into_iter().map(|begin| begin.expect("it began")).collect()
}

fn begins(outcome: &QueueOutcome) -> Vec<Seconds> {
    let begin = |placed: &Option<super::PlacedJob>| placed.as_ref().expect("it began").start;
    outcome.jobs.iter().map(begin).collect()
}

#[test]
fn without_promises_it_is_plain_easy_backfilling() {
    for case in 0..CASES {
        let jobs = jobs(&mut Random::new(case, &[1]), case % 3 == 0);
        let outcome = run_jobs_beside_promises(&cluster(50, NodeChoice::Lowest), &jobs, &[]);
        assert_eq!(begins(&outcome), plain_easy(&jobs), "case {case}");
        let work: Seconds = jobs.iter().map(|job| job.run * i64::from(job.nodes)).sum();
        assert_eq!((outcome.batch, outcome.held, outcome.idle_reserved), (work, 0, 0));
    }
}

#[test]
fn no_node_is_used_twice_and_no_limit_reaches_into_a_slot() {
    for case in 0..CASES {
        let random = &mut Random::new(case, &[2]);
        let (jobs, promises) = (jobs(random, false), promises(random, case));
        assert!(!promises.is_empty());
        for choice in CHOICES {
            for lead in [0, 20, 100, 400] {
                let outcome = run_jobs_beside_promises(&cluster(lead, choice), &jobs, &promises);
                for pair in uses(&jobs, &promises, &outcome, false).windows(2) {
                    let [(node, _, end, _), (next, start, ..)] = pair else {
                        unreachable!()
                    };
                    assert!(
                        node != next || end <= start,
                        "node {node} twice at {start}: {choice:?}"
                    );
                }
                assert_limits_are_respected(&jobs, &promises, &outcome, lead);
                assert_all_is_counted(&jobs, &promises, &outcome, choice, lead);
            }
        }
    }
}

/// No job that began since the nodes of a slot were reserved could reach into it. One that began before may have had a limit within
/// the slot, where it ended before the reservation was made.
fn assert_limits_are_respected(
    jobs: &[BatchJob],
    promises: &[Promise],
    outcome: &QueueOutcome,
    lead: Seconds,
) {
    let limits = uses(jobs, &[], outcome, true);
    for (promise, kept) in promises.iter().zip(&outcome.promises) {
        let reaches = |(node, start, end, _): &&(u32, Seconds, Seconds, bool)| {
            *start >= promise.start - lead
                && kept.nodes.contains(node)
                && *start < promise.end()
                && promise.start < *end
        };
        assert!(
            kept.late || limits.iter().find(reaches).is_none(),
            "slot at {}",
            promise.start
        );
    }
}

fn assert_all_is_counted(
    jobs: &[BatchJob],
    promises: &[Promise],
    outcome: &QueueOutcome,
    choice: NodeChoice,
    lead: Seconds,
) {
    let shared = if let NodeChoice::Dedicated(dedicated) = choice {
        NODES - dedicated
    } else {
        NODES
    };
    for (job, placed) in jobs.iter().zip(&outcome.jobs) {
        assert_eq!(
            placed.is_some(),
            job.nodes <= shared,
            "every job that fits begins"
        );
        assert!(placed.as_ref().is_none_or(|placed| placed.start >= job.submit));
    }
    let mut held = 0;
    for (promise, kept) in promises.iter().zip(&outcome.promises) {
        let distinct: BTreeSet<&u32> = kept.nodes.iter().collect();
        assert!(kept.nodes.is_empty() || distinct.len() == promise.nodes as usize);
        assert!(!kept.nodes.is_empty() || kept.late, "a reserved promise is held");
        if choice == CHOICES[0] || choice == CHOICES[1] {
            assert!(lead < 100 || !kept.late, "no limit is longer than the lead");
        }
        held += promise.duration * Seconds::try_from(kept.nodes.len()).unwrap();
    }
    assert_eq!(outcome.held, held);
    assert!(outcome.idle_reserved <= outcome.idle_waiting);
}

#[test]
fn the_first_of_the_queue_begins_no_later_than_when_it_became_the_first_it_could_have_been_told() {
    for case in 0..CASES {
        let random = &mut Random::new(case, &[3]);
        let (jobs, promises) = (jobs(random, true), promises(random, case));
        // All reservations are known from the beginning.
        let outcome = run_jobs_beside_promises(&cluster(10_000, NodeChoice::BestFit), &jobs, &promises);
        let begins = begins(&outcome);
        let mut first_from = 0;
        for (index, job) in jobs.iter().enumerate() {
            first_from = job.submit.max(first_from);
            let known: Vec<(u32, Seconds, Seconds)> = jobs
                .iter()
                .zip(&outcome.jobs)
                .enumerate()
                .filter_map(|(other, (job, placed))| Some((other, job, placed.as_ref()?)))
                .filter(|(other, _, placed)| (placed.start, *other) < (first_from, index))
                .flat_map(|(_, job, placed)| {
                    let of_node = |node: &u32| (*node, placed.start, placed.start + job.limit);
                    placed.nodes.iter().map(of_node)
                })
                .chain(
                    uses(&[], &promises, &outcome, true)
                        .into_iter()
                        .map(|(node, start, end, _)| (node, start, end)),
                )
                .collect();
            let possible = |start: &Seconds| {
                let free = (0..NODES).filter(|node| {
                    let taken = |(on, from, to): &(u32, Seconds, Seconds)| {
                        on == node && *from < start + job.limit && start < to
                    };
                    !known.iter().any(taken)
                });
                free.count() >= job.nodes as usize
            };
            let told = (first_from..100_000).find(possible).expect("all slots end");
            assert!(
                begins[index] <= told,
                "case {case}, job {index}: {} > {told}",
                begins[index]
            );
            first_from = first_from.max(begins[index]);
        }
    }
}

#[test]
fn idle_time_before_a_slot_is_counted() {
    // One job of 100 s waits for a slot of all nodes from 50 to 150, which is reserved 50 s before.
    let job = BatchJob {
        submit: 10,
        run: 100,
        limit: 100,
        nodes: 2,
    };
    let promise = Promise {
        start: 50,
        duration: 100,
        nodes: NODES,
    };
    let outcome = run_jobs_beside_promises(&cluster(50, NodeChoice::BestFit), &[job], &[promise]);
    assert_eq!(begins(&outcome), [150]);
    let idle = 40 * i64::from(NODES);
    assert_eq!((outcome.idle_waiting, outcome.idle_reserved), (idle, idle));
    // With a lead of 20 s the job runs on two nodes, which the promise then lacks.
    let outcome = run_jobs_beside_promises(&cluster(20, NodeChoice::BestFit), &[job], &[promise]);
    assert_eq!(begins(&outcome), [10]);
    assert!(outcome.promises[0].late && outcome.promises[0].nodes.is_empty());
    assert_eq!((outcome.idle_waiting, outcome.held), (0, 0));
}

#[test]
fn best_fit_takes_the_nodes_that_are_free_last() {
    let job = |submit, limit| BatchJob {
        submit,
        run: limit,
        limit,
        nodes: 4,
    };
    let jobs = [job(0, 30), job(1, 90), job(2, 60)];
    let promise = Promise {
        start: 100,
        duration: 10,
        nodes: 6,
    };
    let nodes = |choice| {
        let outcome = run_jobs_beside_promises(&cluster(90, choice), &jobs, &[promise]);
        outcome.promises[0].nodes.clone()
    };
    assert_eq!(nodes(NodeChoice::Lowest), [0, 1, 2, 3, 4, 5]);
    assert_eq!(nodes(NodeChoice::BestFit), [4, 5, 6, 7, 8, 9]);
    assert_eq!(nodes(NodeChoice::Dedicated(7)), [5, 6, 7, 8, 9, 10]);
}

#[test]
fn promises_are_as_much_as_was_asked_for_and_the_same_from_the_same_seed() {
    let models = [BatchJob {
        submit: 0,
        run: 600,
        limit: 3_600,
        nodes: 3,
    }];
    for scale in [DemandScale::Jobs, DemandScale::Minutes] {
        let demand = Demand { share: 20, scale };
        let draw = |seed| demand.draw(seed, 16, &models, (0, 100_000));
        let promises = draw(1);
        assert_eq!(promises, draw(1));
        assert_ne!(promises, draw(2));
        let work: i64 = promises.iter().map(|p| p.duration * i64::from(p.nodes)).sum();
        assert!((320_000..320_000 + 1_800).contains(&work), "{work} node-seconds");
        for promise in &promises {
            let at = |p: &&Promise| p.start <= promise.start && promise.start < p.end();
            let together: u32 = promises.iter().filter(at).map(|p| p.nodes).sum();
            assert!(together <= 8, "{together} nodes at {}", promise.start);
        }
    }
}
