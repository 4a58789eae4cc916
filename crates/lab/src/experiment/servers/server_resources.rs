//! Beyond paper 003: its jobs on the domain of the service, whose resources have many nodes, under two objectives.

use std::collections::BTreeMap;

use scheduler::domain::{Domain, Objective, Resource, Task};
use scheduler::{Interval, SlotTree, Time};

use super::scenario::{Deadlines, GROUP, JobPlan, Scenario, ScenarioResult};
use super::{
    LOSS, MOST, Measure, PlayedRun, ServerResults, UTILISATION, WAITING, play_server_runs, server_measure,
};
use crate::experiment::setup::Setup;
use crate::figure::Figure;
use crate::heterogeneous::{Job, Operations, SingleTree};
use crate::report::{Finding, Report, count_reported_cases, mean_cells, report_table};

/// Offered loads ρ in percent.
const LOADS: [u32; 3] = [70, 90, 110];
/// Seconds planned ahead: two weeks, and the longest job with its laxity.
const AHEAD: i64 = 20 * 86_400;
/// The nodes of a resource and of jobs where jobs take many.
const SHARED: u32 = 64;
const SHARED_SIZES: [u32; 10] = [1, 1, 2, 4, 4, 8, 8, 16, 16, 32];

const STRETCH: Measure = server_measure("stretch", "ready to complete (sizes)", |o| o.stretch);

/// The resources that jobs are placed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerLayout {
    /// The paper's servers, each a resource of its own.
    Servers,
    /// A resource of forty nodes for each rate.
    Nodes,
    /// A resource of 64 nodes for each rate, and jobs on 1 to 32 nodes.
    Shared,
}

impl ServerLayout {
    const ALL: [Self; 3] = [Self::Servers, Self::Nodes, Self::Shared];

    fn name(self) -> &'static str {
        match self {
            Self::Servers => "120 servers",
            Self::Nodes => "3 × 40 nodes",
            Self::Shared => "3 × 64 nodes (jobs on 1 to 32)",
        }
    }

    fn sizes(self) -> &'static [u32] {
        match self {
            Self::Shared => &SHARED_SIZES,
            _ => &[1],
        }
    }
}

/// The rule that places a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlacementRule {
    /// One tree a class, on single servers.
    OneTree,
    /// By an objective of the domain.
    By(Objective),
}

const EARLIEST: PlacementRule = PlacementRule::By(Objective::EarliestCompletion);
const LEAST_LOST: PlacementRule = PlacementRule::By(Objective::LeastWorkLost);

impl PlacementRule {
    fn name(self) -> &'static str {
        match self {
            Self::OneTree => "one tree a class",
            Self::By(Objective::LeastWorkLost) => "least work lost",
            Self::By(_) => "earliest completion",
        }
    }
}

/// A domain whose choice is by an objective.
struct ServerResources {
    domain: Domain<SlotTree>,
    objective: Objective,
}

impl JobPlan for ServerResources {
    fn forget(&mut self, before: Time) {
        let ids: Vec<u64> = self.domain.iter().map(|(resource, _)| resource.id).collect();
        for id in ids {
            self.domain.change(id, |plan| (plan.forget(before), Vec::new()));
        }
        self.domain.advance(before);
    }

    fn allocate(&mut self, job: &Job, nodes: u32) -> Option<Interval> {
        let task = Task {
            nodes,
            work: job.size,
            window: Interval::new(job.ready, job.deadline),
            requires: Vec::new(),
            except: Vec::new(),
            forecasts: None,
        };
        let best = self.domain.decide(&task, self.objective).ok()?;
        let reserve = |plan: &mut SlotTree| (plan.reserve(best.slot, nodes).is_ok(), vec![best.slot]);
        let taken = self.domain.change(best.resource, reserve);
        debug_assert_eq!(taken, Some(true), "the place found is free");
        Some(best.slot)
    }

    fn periods(&self) -> usize {
        0
    }

    fn operations(&self) -> Operations {
        Operations::default()
    }
}

/// Jobs on resources by a rule.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ResourceRun {
    layout: ServerLayout,
    choice: PlacementRule,
    scenario: Scenario,
}

impl ResourceRun {
    fn play(&self, seed: u64, batch: u64) -> ScenarioResult {
        let Self { layout, scenario, .. } = self;
        let PlacementRule::By(objective) = self.choice else {
            return scenario.play(SingleTree::default(), seed, batch);
        };
        let rates = scenario.rates();
        let nodes = match layout {
            ServerLayout::Servers => 1,
            _ => scenario.group,
        };
        let rates = rates.into_iter().step_by(nodes as usize);
        let resource = |(id, rate)| Resource {
            id,
            rate,
            price: 0,
            attributes: BTreeMap::new(),
        };
        let resources = (0..).zip(rates).map(resource);
        let planned = Interval::new(Time(0), Time(AHEAD));
        let domain = Domain::new(
            planned,
            resources
                .map(|resource| (resource, SlotTree::new(nodes)))
                .collect(),
        );
        scenario.play_on(ServerResources { domain, objective }, layout.sizes(), seed, batch)
    }
}

impl ServerResults<ResourceRun> {
    /// The runs by rule `a` and by rule `b`, where `b` was played, on the same jobs.
    fn resource_pairs(
        &self,
        a: PlacementRule,
        b: PlacementRule,
    ) -> impl Iterator<Item = (ResourceRun, ResourceRun)> {
        let of_b = self
            .0
            .iter()
            .map(|each| each.run)
            .filter(move |run| run.choice == b);
        of_b.map(move |run| (ResourceRun { choice: a, ..run }, run))
    }

    /// In how many cases `a` has no more by mean than `b`, and of how many.
    fn resources_no_more(&self, measure: &Measure, a: PlacementRule, b: PlacementRule) -> (usize, usize) {
        let mean = |run| self.of_run(&run).mean(measure);
        count_reported_cases(self.resource_pairs(a, b).map(|(a, b)| mean(a) <= mean(b) + 1e-9))
    }

    /// The means of both at ρ = 0.9 with deadlines r + l + U.
    fn resources_at_ninety(&self, measure: &Measure, a: PlacementRule, b: PlacementRule) -> String {
        let at = |(a, b): (ResourceRun, ResourceRun)| {
            let is_asked = a.scenario.load == 90 && a.scenario.deadlines == Deadlines::Size;
            is_asked.then(|| {
                let [a_mean, b_mean] = [a, b].map(|run| self.of_run(&run).summary(measure));
                format!("{}: {a_mean:.2} for {b_mean:.2}", a.layout.name())
            })
        };
        self.resource_pairs(a, b)
            .filter_map(at)
            .collect::<Vec<_>>()
            .join("; ")
    }
}

pub(in crate::experiment) fn report_server_resources(setup: &Setup) -> Report {
    let mut runs = Vec::new();
    for layout in ServerLayout::ALL {
        for choice in [PlacementRule::OneTree, EARLIEST, LEAST_LOST] {
            if choice == PlacementRule::OneTree && layout != ServerLayout::Servers {
                continue;
            }
            for deadlines in [Deadlines::Size, Deadlines::SlowSize] {
                runs.extend(LOADS.map(|load| ResourceRun {
                    layout,
                    choice,
                    scenario: Scenario {
                        level: MOST,
                        group: if layout == ServerLayout::Shared {
                            SHARED
                        } else {
                            GROUP
                        },
                        load,
                        deadlines,
                        jobs: setup.servers.jobs,
                    },
                }));
            }
        }
    }
    let one = |run: &ResourceRun, batch| run.play(setup.seed, batch);
    let results = play_server_runs(setup, runs, one, |played| {
        let ResourceRun {
            layout,
            choice,
            scenario,
        } = played.run;
        format!("{} on {},{},", choice.name(), layout.name(), scenario.rho())
    });
    results.report_resources(setup)
}

impl ServerResults<ResourceRun> {
    fn report_resources(&self, setup: &Setup) -> Report {
        let measures = [&LOSS, &UTILISATION, &WAITING, &STRETCH];
        let labels = measures.map(|measure| format!(" | {} | ± 95 %", measure.label));
        let headings = "resources | rule | ρ | deadlines".to_owned() + &labels.concat();
        let row = |played: &PlayedRun<ResourceRun>| {
            let run = &played.run;
            let (layout, rule) = (run.layout.name().to_owned(), run.choice.name().to_owned());
            let names = [
                layout,
                rule,
                run.scenario.rho().to_string(),
                run.scenario.deadlines.formula().to_owned(),
            ];
            let numbers = measures.map(|measure| mean_cells(&played.summary(measure)));
            names.into_iter().chain(numbers.concat()).collect()
        };
        let loss = |a, b| self.resources_at_ninety(&LOSS, a, b);
        let (no_more, cases) = self.resources_no_more(&LOSS, LEAST_LOST, EARLIEST);
        let (no_later, _) = self.resources_no_more(&STRETCH, LEAST_LOST, EARLIEST);
        let (as_tree, tree_cases) = self.resources_no_more(&LOSS, LEAST_LOST, PlacementRule::OneTree);
        let findings = [
            Finding::new("the least work lost refuses no more work than the earliest completion")
                .seen(format!(
                    "in {no_more} of {cases} cases; at ρ = 0.9 (%): {}",
                    loss(LEAST_LOST, EARLIEST)
                ))
                .counted(no_more, cases),
            Finding::new("and on single servers no more than one tree a class")
                .seen(format!(
                    "in {as_tree} of {tree_cases} cases; at ρ = 0.9 (%): {}",
                    self.resources_at_ninety(&LOSS, LEAST_LOST, PlacementRule::OneTree)
                ))
                .counted(as_tree, tree_cases)
                .because("its leads are traded against waiting, and those longer than the job count no more"),
            Finding::new("jobs complete no later under it than under the earliest completion")
                .seen(format!(
                    "in {no_later} of {cases} cases; from ready to complete at ρ = 0.9, in sizes: {}",
                    self.resources_at_ninety(&STRETCH, LEAST_LOST, EARLIEST)
                ))
                .counted(no_later, cases)
                .because("what can wait goes to the slow nodes: this is its price"),
        ];
        let figure = Figure::new("Work refused by the objective of the domain").named("003-resources-loss");
        // A line for each rule on each kind of resources, with the paper's deadlines.
        let series = self.series(&LOSS, |run| {
            let label = format!("{}, {}", run.choice.name(), run.layout.name());
            (run.scenario.deadlines == Deadlines::Size).then(|| (label, run.scenario.rho()))
        });
        let figure = figure.x("load ρ").y(LOSS.label).lines(series);
        let (runs, jobs) = (setup.servers.runs, setup.servers.jobs);
        Report::new("Least work lost on resources of many nodes")
            .about(format!(
                "The jobs and rates of paper 003 on the service's domain of resources, which nothing moves once it is placed; \
                 {runs} runs of {jobs} jobs, of which those after two weeks count, or half of a shorter run."
            ))
            .with(findings, report_table(&headings, self.0.iter().map(row)), [figure])
    }
}
