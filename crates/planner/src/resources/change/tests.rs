//! Facts about resources that come, change and go, on a plan without a store.

use domain::agreement::{Agreement, Filter, RunOutcome, ServiceState};
use domain::resources::{Binding, NodeReport, NodeState, Reporter};
use scheduler::domain::Attribute;
use scheduler::{Interval, Rate, Reason, Time};
use uuid::Uuid;

use super::*;
use crate::commands::{ChangeResource, Configure, OpenResource};
use crate::resources::repair;
use crate::tests::harness::{Domain, arm, proposal, rated, work};
use crate::{Request, Settings, State};

fn local(capacity: u32) -> Resource {
    Resource::new("local", "local", capacity)
}

fn order(name: &str, verb: ResourceVerb) -> ChangeResource {
    ChangeResource {
        id: Uuid::now_v7(),
        party: "operator".to_owned(),
        name: name.to_owned(),
        verb,
    }
}

fn nodes(capacity: u32) -> ResourceVerb {
    ResourceVerb::Put(ResourceWish {
        capacity: Some(capacity),
        ..ResourceWish::default()
    })
}

/// Has it done after it was asked what would follow: the same follows, and asking has changed nothing.
fn set(domain: &mut Domain, name: &str, verb: ResourceVerb) -> Result<ResourceChanges, Error> {
    let asked = order(name, verb.clone());
    let known = domain.known.clone();
    let would = domain.decide(|decider| decider.try_out(|tried| tried.decide(asked))?);
    assert_eq!(domain.known, known, "asking changes nothing");
    domain.check();
    let done = domain.decide(|decider| decider.decide(order(name, verb)));
    let bare = |changes: &Result<ResourceChanges, Error>| {
        changes
            .clone()
            .map(|changes| (changes.resources, changes.effects))
    };
    assert_eq!(bare(&would), bare(&done));
    for (id, change) in done.iter().flat_map(|done| &done.effects.changes) {
        let lies = change.to.as_ref().map(|to| (to.resource.clone(), to.slot));
        let known = domain.known.get(id);
        assert_eq!(
            lies,
            known.map(|agreement| (agreement.resource.clone(), agreement.placement()))
        );
    }
    domain.check();
    domain.check_rebuilt();
    done
}

fn lies(agreement: &Agreement) -> (&str, Interval) {
    (agreement.resource.as_str(), agreement.placement())
}

fn at(start: i64, end: i64) -> Interval {
    Interval::new(Time(start), Time(end))
}

#[test]
fn what_is_asked_for_in_vain_has_a_place_on_a_resource_that_comes_and_on_one_that_grows() {
    let mut domain = Domain::new(vec![local(2)]);
    let refusal = domain.place(proposal(4, 100, (0, 400))).unwrap_err();
    assert_eq!(refusal.reason, Reason::SizeExceedsCapacity);
    let added = set(&mut domain, "large", nodes(4)).unwrap();
    assert_eq!(added.resources[0].1, "added, local with 4 nodes");
    let first = domain.place(proposal(4, 100, (0, 100))).unwrap().agreement;
    assert_eq!(lies(&first), ("large", at(0, 100)));
    assert!(domain.place(proposal(5, 100, (0, 400))).is_err());
    // Another word for the same changes nothing.
    let again = set(&mut domain, "large", nodes(4)).unwrap();
    assert_eq!(
        (again.resources[0].1.as_str(), again.effects),
        ("", Repaired::default())
    );
    let grown = set(&mut domain, "large", nodes(9)).unwrap();
    assert_eq!(grown.resources[0].1, "9 nodes instead of 4");
    let second = domain.place(proposal(5, 100, (0, 100))).unwrap().agreement;
    assert_eq!(lies(&second), ("large", at(0, 100)));
    let third = domain.place(proposal(9, 100, (0, 400))).unwrap().agreement;
    assert_eq!(lies(&third), ("large", at(100, 200)));
    domain.check();
}

#[test]
fn a_faster_resource_is_chosen_from_when_on_it_is_faster() {
    let mut domain = Domain::new(vec![rated("first", 4, 1_000_000), rated("second", 4, 1_000_000)]);
    let scaling = || Request {
        scaling: domain::resources::Scaling::ReferenceRate,
        ..proposal(1, 100, (0, 400))
    };
    assert_eq!(domain.place(scaling()).unwrap().agreement.resource, "first");
    let faster = ResourceVerb::Put(ResourceWish {
        rate: Rate::from_millionths(2_000_000),
        ..ResourceWish::default()
    });
    let changed = set(&mut domain, "second", faster).unwrap();
    assert_eq!(changed.resources[0].1, "rate 2 instead of 1");
    let placed = domain.place(scaling()).unwrap().agreement;
    assert_eq!(lies(&placed), ("second", at(0, 50)));
}

#[test]
fn of_a_resource_that_shrinks_what_does_not_fit_moves_or_loses_its_place_and_its_party_is_told() {
    let mut domain = Domain::new(vec![local(4), Resource::new("other", "local", 2)]);
    domain.settings.proposals.moves_max = 1;
    let stays = domain.place(proposal(2, 100, (100, 200))).unwrap().agreement;
    let later = domain.place(proposal(2, 100, (100, 400))).unwrap().agreement;
    let whole = domain.place(proposal(4, 100, (300, 400))).unwrap().agreement;
    let elsewhere = domain.place(proposal(2, 100, (500, 600))).unwrap().agreement;
    let beside = domain.place(proposal(1, 100, (500, 600))).unwrap().agreement;
    let shrunk = set(&mut domain, "local", nodes(2)).unwrap();
    assert_eq!(shrunk.resources[0].1, "2 nodes instead of 4");
    assert_eq!(lies(domain.of(stays.id)), ("local", at(100, 200)));
    assert_eq!(lies(domain.of(later.id)), ("local", at(200, 300)));
    let [one, two] = [elsewhere.id, beside.id].map(|id| domain.of(id).clone());
    assert_eq!(one.placement(), two.placement());
    assert_ne!(one.resource, two.resource, "there is room for one only");
    assert!(!domain.known.contains_key(&whole.id));
    let told: Vec<&str> = domain.told.iter().map(|(_, line)| line.as_str()).collect();
    assert!(
        told.contains(&"100 seconds later, because local has fewer nodes than before"),
        "{told:?}"
    );
    let lost = "local has fewer nodes than before, and there is no other place in its window";
    assert!(told.iter().any(|line| line.starts_with(lost)), "{told:?}");
    assert_eq!((shrunk.effects.moved, shrunk.effects.broken), (2, 1));
    assert_eq!(shrunk.effects.changes[&whole.id].to, None);
    assert_eq!(
        domain.state.table.take_suggestions().len(),
        1,
        "its party is proposed another place"
    );
    // They come back: later requests can have them.
    set(&mut domain, "local", nodes(4)).unwrap();
    let again = domain.place(proposal(4, 50, (300, 400))).unwrap().agreement;
    assert_eq!(lies(&again), ("local", at(300, 350)));
}

#[test]
fn work_keeps_nodes_that_leave_until_it_ends_and_nobody_gets_them_then() {
    let mut domain = Domain::new(vec![local(4)]);
    domain.moves_up = false;
    let small = domain.place(work(1, 100, (0, 100))).unwrap().agreement;
    let large = domain.place(work(3, 200, (0, 200))).unwrap().agreement;
    domain.begin(0);
    assert_eq!(*domain.state.life.nodes_of(large.id).unwrap(), [1, 2, 3]);
    set(&mut domain, "local", nodes(2)).unwrap();
    for id in [small.id, large.id] {
        assert_eq!(domain.of(id).service, ServiceState::Processing);
    }
    // Of the two that stay one has work of each.
    let soon = domain.place(work(1, 50, (0, 400))).unwrap().agreement;
    assert_eq!(soon.placement().start, Time(100));
    let both = domain.place(work(2, 50, (0, 400))).unwrap().agreement;
    assert_eq!(both.placement().start, Time(200));
    // Its end frees one that stays, and two that are gone.
    domain.now = 20;
    domain.end(large.id, RunOutcome::Completed);
    let next = domain.place(work(1, 50, (0, 400))).unwrap().agreement;
    assert_eq!(next.placement().start, Time(20));
    domain.begin(20);
    assert_eq!(*domain.state.life.nodes_of(next.id).unwrap(), [1]);
    let refusal = domain.place(work(1, 50, (0, 90))).unwrap_err();
    assert_eq!(refusal.reason, Reason::NoCapacityInWindow);
    let at = domain.state.schedules.place_of("local").unwrap();
    assert_eq!(
        domain.state.schedules.get(at).unwrap().schedule.tree().capacity(),
        2
    );
    domain.check_rebuilt();
}

#[test]
fn a_slot_on_nodes_that_leave_is_not_made_longer() {
    let mut domain = Domain::new(vec![local(2)]);
    domain.settings.overruns.percent = 100;
    domain.state.life.set_overruns(&domain.settings.overruns);
    let one = domain.place(work(1, 100, (0, 100))).unwrap().agreement;
    let other = domain.place(work(1, 100, (0, 100))).unwrap().agreement;
    domain.pass_until(1);
    set(&mut domain, "local", nodes(1)).unwrap();
    domain.pass_until(99);
    assert_eq!(domain.of(one.id).placement(), at(0, 110));
    assert_eq!(domain.of(other.id).placement(), at(0, 100));
}

#[test]
fn a_retired_resource_takes_nothing_new_what_waits_leaves_it_and_what_runs_goes_on() {
    let mut domain = Domain::new(vec![local(4), Resource::new("other", "local", 2)]);
    let runs = domain.place(work(1, 100, (0, 100))).unwrap().agreement;
    domain.begin(0);
    let goes = domain.place(proposal(2, 100, (100, 400))).unwrap().agreement;
    let fixed = domain.place(proposal(2, 100, (200, 300))).unwrap().agreement;
    let whole = domain.place(proposal(4, 100, (300, 400))).unwrap().agreement;
    assert_eq!([&goes, &fixed].map(|each| each.resource.as_str()), ["local"; 2]);
    let retired = set(&mut domain, "local", ResourceVerb::Retire).unwrap();
    assert_eq!(retired.resources[0].1, "retired");
    assert_eq!(domain.of(runs.id).service, ServiceState::Processing);
    assert_eq!(lies(domain.of(goes.id)), ("other", at(100, 200)));
    assert_eq!(lies(domain.of(fixed.id)), ("other", at(200, 300)));
    assert_eq!(retired.effects.changes[&whole.id].to, None);
    assert!(
        set(&mut domain, "local", ResourceVerb::Retire)
            .unwrap()
            .effects
            .changes
            .is_empty()
    );
    let refusal = domain.place(proposal(3, 50, (0, 400))).unwrap_err();
    assert_eq!(refusal.reason, Reason::SizeExceedsCapacity);
    assert_eq!(
        domain
            .place(proposal(1, 50, (0, 400)))
            .unwrap()
            .agreement
            .resource,
        "other"
    );
    domain.now = 40;
    domain.end(runs.id, RunOutcome::Completed);
    // It is in service again.
    let back = set(&mut domain, "local", ResourceVerb::Restore).unwrap();
    assert_eq!(back.resources[0].1, "back in service");
    let again = domain.place(proposal(4, 50, (0, 400))).unwrap().agreement;
    assert_eq!(again.resource, "local");
}

#[test]
fn a_retired_resource_that_is_read_and_restored_within_a_second_gives_no_node_twice() {
    let mut domain = Domain::new(vec![local(2)]);
    let retired = Resource {
        retired: Some(0),
        ..local(2)
    };
    // Its last work ended within this second.
    let unended = Binding {
        resource: "local".to_owned(),
        node: 1,
        interval: at(3, 11),
        agreement: Uuid::now_v7(),
    };
    domain.now = 10;
    let (settings, now) = (&domain.settings, Time(10));
    let read = |bindings| {
        State::rebuild(
            settings,
            std::slice::from_ref(&retired),
            Vec::new(),
            bindings,
            now,
        )
    };
    assert!(read(Vec::new()).unwrap().schedules.place_of("local").is_none());
    domain.state = read(vec![unended]).unwrap();
    set(&mut domain, "local", ResourceVerb::Restore).unwrap();
    let both = domain.place(work(2, 50, (0, 400))).unwrap().agreement;
    assert_eq!(both.placement(), at(11, 61));
}

#[test]
fn lost_work_of_a_retired_resource_is_run_again_elsewhere() {
    let mut domain = Domain::new(vec![local(2), Resource::new("other", "local", 2)]);
    domain.settings.restarting = ["t".to_owned()].into();
    let runs = domain.place(work(1, 100, (0, 600))).unwrap().agreement;
    domain.pass_until(1);
    set(&mut domain, "local", ResourceVerb::Retire).unwrap();
    let down = NodeReport {
        states: vec![NodeState::Down; 2],
        ..NodeReport::default()
    };
    let repaired = domain.decide(|decider| repair::repair_nodes(decider, "local", Reporter::Operator, &down));
    assert_eq!(repaired.unwrap().moved, 1);
    assert_eq!(domain.of(runs.id).resource, "other");
    domain.check();
}

#[test]
fn what_was_asked_of_nodes_is_still_so_or_the_agreement_goes_elsewhere() {
    let mut domain = Domain::new(vec![arm("first"), arm("second")]);
    let asks = Request {
        filters: vec![Filter::Word {
            attribute: "cpu_architecture".into(),
            is: "arm".into(),
        }],
        ..proposal(1, 100, (100, 200))
    };
    let asks = domain.place(asks).unwrap().agreement;
    let any = domain.place(proposal(1, 100, (100, 200))).unwrap().agreement;
    let other = ResourceVerb::Put(ResourceWish {
        attributes: Some([("cpus".to_owned(), Attribute::Number(8))].into()),
        ..ResourceWish::default()
    });
    let changed = set(&mut domain, "first", other).unwrap();
    assert_eq!(changed.resources[0].1, "other attributes");
    assert_eq!(lies(domain.of(asks.id)), ("second", at(100, 200)));
    assert_eq!(domain.of(any.id).resource, "first");
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let cluster = Resource {
        node_names: vec!["n1".to_owned(), "n2".to_owned()],
        ..Resource::new("cluster", "slurm", 2)
    };
    let mut domain = Domain::new(vec![local(4), cluster]);
    let kind = |kind: &str| {
        ResourceVerb::Put(ResourceWish {
            kind: Some(kind.to_owned()),
            capacity: Some(3),
            ..ResourceWish::default()
        })
    };
    for (name, verb, told) in [
        (
            "new",
            ResourceVerb::Put(ResourceWish::default()),
            "a new one needs a number of nodes",
        ),
        ("new", kind("slurm"), "is added in the configuration"),
        ("local", kind("slurm"), "which does not change"),
        (
            "cluster",
            nodes(3),
            "with the 2 nodes that the configuration names",
        ),
        (
            "cluster",
            ResourceVerb::Put(ResourceWish {
                executor: Some(serde_json::json!({ "limits": { "processes": 4 } })),
                ..ResourceWish::default()
            }),
            "are changed in the configuration",
        ),
    ] {
        match set(&mut domain, name, verb) {
            Err(Error::Unfit(why)) => assert!(why.contains(told), "{why}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    for verb in [ResourceVerb::Retire, ResourceVerb::Restore] {
        assert_eq!(set(&mut domain, "new", verb), Err(Error::NotFound));
    }
    set(&mut domain, "cluster", nodes(1)).unwrap();
    set(&mut domain, "cluster", nodes(2)).unwrap();
}

/// Reads a configuration with these resources while the service runs. Returns what is told of resources.
fn read(domain: &mut Domain, resources: Vec<Resource>) -> Result<Vec<String>, Error> {
    let reconfiguration = Configure {
        id: Uuid::now_v7(),
        party: None,
        settings: Settings {
            resources,
            ..domain.settings.clone()
        },
        is_start: false,
    };
    let changes = domain.decide(|decider| decider.decide(reconfiguration))?;
    domain.check();
    let told = changes.resources.into_iter();
    Ok(told
        .map(|(told, words)| format!("{}: {words}", told.name))
        .collect())
}

fn cluster(nodes: &[&str]) -> Resource {
    Resource {
        node_names: nodes.iter().map(|node| (*node).to_owned()).collect(),
        closed: true,
        ..Resource::new("cluster", "slurm", nodes.len().try_into().unwrap())
    }
}

/// Whether it was refused, with these words.
fn is_unfit<T: std::fmt::Debug>(error: &Result<T, Error>, told: &str) -> bool {
    matches!(&error, Err(Error::Unfit(why)) if why.contains(told)) || panic!("{error:?}")
}

#[test]
fn a_resource_with_work_keeps_its_kind_and_the_order_of_its_nodes_when_the_file_is_read_also_once_it_is_retired()
 {
    let mut domain = Domain::new(vec![cluster(&["a", "b"])]);
    domain
        .decide(|decider| {
            decider.decide(OpenResource {
                resource: "cluster".into(),
            })
        })
        .unwrap();
    let runs = domain.place(work(1, 100, (0, 100))).unwrap().agreement;
    domain.begin(0);
    let other_kind = || vec![Resource::new("cluster", "local", 2)];
    let other_order = || vec![cluster(&["b", "a"])];
    for retires in [false, true] {
        if retires {
            set(&mut domain, "cluster", ResourceVerb::Retire).unwrap();
        }
        assert!(is_unfit(&read(&mut domain, other_kind()), "its kind changes"));
        assert!(is_unfit(&read(&mut domain, other_order()), "at its end"));
    }
    domain.now = 20;
    domain.end(runs.id, RunOutcome::Completed);
    domain.now = 30;
    read(&mut domain, other_order()).unwrap();
    set(&mut domain, "cluster", ResourceVerb::Retire).unwrap();
    read(&mut domain, other_kind()).unwrap();
    assert_eq!(
        domain.state.schedules.named_or_gone("cluster").unwrap().kind,
        "local"
    );
}

#[test]
fn a_configuration_changes_what_has_changed_in_it_and_retires_what_it_has_no_more() {
    let mut domain = Domain::new(vec![local(4)]);
    let read = |domain: &mut Domain, resources| read(domain, resources).unwrap();
    let other = || Resource::new("other", "local", 2);
    assert_eq!(
        read(&mut domain, vec![local(4), other()]),
        ["other: added, local with 2 nodes"]
    );
    assert!(read(&mut domain, vec![local(4), other()]).is_empty());
    set(&mut domain, "local", nodes(6)).unwrap();
    set(&mut domain, "added", nodes(1)).unwrap();
    set(&mut domain, "other", ResourceVerb::Retire).unwrap();
    assert!(
        read(&mut domain, vec![local(4), other()]).is_empty(),
        "the file is the same"
    );
    let waits = domain.place(proposal(1, 100, (100, 200))).unwrap().agreement;
    assert_eq!(waits.resource, "local");
    // It is called another name: the agreement goes there.
    let renamed = || Resource::new("renamed", "local", 4);
    assert_eq!(
        read(&mut domain, vec![renamed(), other()]),
        ["renamed: added, local with 4 nodes", "local: retired"]
    );
    assert_eq!(lies(domain.of(waits.id)).1, at(100, 200));
    assert_ne!(domain.of(waits.id).resource, "local");
    // What comes back in the file is in service, and what changes there is as there.
    assert_eq!(
        read(
            &mut domain,
            vec![local(5), renamed(), Resource::new("other", "local", 3)]
        ),
        [
            "local: back in service, 5 nodes instead of 6",
            "other: 3 nodes instead of 2"
        ]
    );
    assert!(
        domain
            .state
            .schedules
            .named_or_gone("other")
            .unwrap()
            .is_retired()
    );
}

#[test]
fn a_list_of_nodes_is_not_shortened_by_one_on_which_work_runs_until_that_is_over() {
    let mut domain = Domain::new(vec![cluster(&["a", "b"])]);
    domain
        .decide(|decider| {
            decider.decide(OpenResource {
                resource: "cluster".into(),
            })
        })
        .unwrap();
    let runs = domain.place(work(2, 100, (0, 100))).unwrap().agreement;
    domain.begin(0);
    let shorter = || vec![cluster(&["a"])];
    assert!(is_unfit(
        &read(&mut domain, shorter()),
        "resize cluster --nodes 1"
    ));
    set(&mut domain, "cluster", nodes(1)).unwrap();
    assert!(is_unfit(&read(&mut domain, shorter()), "resize cluster"));
    domain.now = 20;
    domain.end(runs.id, RunOutcome::Completed);
    domain.now = 30;
    read(&mut domain, shorter()).unwrap();
    assert_eq!(
        domain
            .state
            .schedules
            .named_or_gone("cluster")
            .unwrap()
            .node_names,
        ["a"]
    );
}

#[test]
fn a_resource_that_becomes_a_cluster_or_a_cluster_that_comes_back_is_closed_until_it_is_checked() {
    let mut domain = Domain::new(vec![cluster(&["a"])]);
    let closed = |domain: &Domain| domain.state.schedules.closed().count() == 1;
    domain
        .decide(|decider| {
            decider.decide(OpenResource {
                resource: "cluster".into(),
            })
        })
        .unwrap();
    set(&mut domain, "cluster", ResourceVerb::Retire).unwrap();
    assert!(!closed(&domain));
    set(&mut domain, "cluster", ResourceVerb::Restore).unwrap();
    assert!(closed(&domain));
    for (is_closed, next) in [
        (false, Resource::new("cluster", "local", 1)),
        (true, cluster(&["a"])),
    ] {
        set(&mut domain, "cluster", ResourceVerb::Retire).unwrap();
        read(&mut domain, vec![next]).unwrap();
        assert_eq!(closed(&domain), is_closed);
    }
}

#[test]
fn what_is_left_on_a_retired_resource_is_still_looked_for_after_a_restart() {
    let retired = |resource: Resource| Resource {
        retired: Some(0),
        ..resource
    };
    let domain = Domain::new(vec![local(2)]);
    let resources = [retired(local(2)), retired(cluster(&["a"]))];
    let mut plan = State::rebuild(&domain.settings, &resources, Vec::new(), Vec::new(), Time(0)).unwrap();
    assert!(plan.schedules.place_of("local").is_none());
    // It may have reservations.
    assert!(plan.schedules.place_of("cluster").is_some());
    let mut before = Domain::new(vec![local(2)]);
    let lost = before.place(work(1, 100, (0, 100))).unwrap().agreement;
    plan.recall_lost(vec![lost.clone()]);
    assert_eq!(plan.life.running(&plan.agreements), [lost]);
}

#[test]
fn a_frozen_resource_takes_nothing_new_and_what_is_agreed_stays_and_moves_on_it_alone() {
    let mut domain = Domain::new(vec![local(4), Resource::new("other", "local", 2)]);
    let stays = domain.place(proposal(1, 100, (100, 400))).unwrap().agreement;
    let wide = domain.place(proposal(4, 100, (100, 400))).unwrap().agreement;
    assert_eq!([&stays, &wide].map(|each| each.resource.as_str()), ["local"; 2]);
    let before = (lies(domain.of(stays.id)).1, lies(domain.of(wide.id)).1);
    let frozen = set(&mut domain, "local", ResourceVerb::Freeze).unwrap();
    assert_eq!(frozen.resources[0].1, "frozen");
    assert!(frozen.effects.changes.is_empty());
    assert_eq!((lies(domain.of(stays.id)).1, lies(domain.of(wide.id)).1), before);
    let again = set(&mut domain, "local", ResourceVerb::Freeze).unwrap();
    assert_eq!(again.resources[0].1, "");
    // Only it could take this.
    let refusal = domain.place(proposal(3, 50, (0, 400))).unwrap_err();
    assert_eq!(refusal.reason, Reason::SizeExceedsCapacity);
    assert!(
        refusal.binding.contains("local is frozen by the operator"),
        "{refusal:?}"
    );
    let new = domain.place(proposal(2, 100, (0, 100))).unwrap().agreement;
    assert_eq!(new.resource, "other");
    assert!(
        domain.place(proposal(1, 100, (0, 100))).is_err(),
        "nothing goes to it to make room"
    );
    // Work of others does not go there when it loses its nodes; its own moves on it.
    let down = |nodes| NodeReport {
        states: vec![NodeState::Drained; nodes],
        ..NodeReport::default()
    };
    domain.now = 1;
    let repaired =
        domain.decide(|decider| repair::repair_nodes(decider, "local", Reporter::Operator, &down(1)));
    assert!(
        repaired
            .unwrap()
            .changes
            .values()
            .all(|change| change.to.as_ref().is_none_or(|to| to.resource == "local"))
    );
    assert_eq!(domain.of(stays.id).resource, "local");
    domain.check();
    let waits = domain.place(proposal(2, 100, (200, 400))).unwrap().agreement;
    assert_eq!(waits.resource, "other");
    let lost = domain.decide(|decider| repair::repair_nodes(decider, "other", Reporter::Operator, &down(2)));
    assert_eq!(lost.unwrap().changes[&waits.id].to, None);
    let thawed = set(&mut domain, "local", ResourceVerb::Thaw).unwrap();
    assert_eq!(thawed.resources[0].1, "thawed");
    let new = domain.place(proposal(1, 50, (0, 400))).unwrap().agreement;
    assert_eq!(new.resource, "local");
}
