//! Work in pieces goes to another resource: where its own fails, and to let others in.

use domain::agreement::Filter;

use super::*;
use crate::ResourceVerb;
use crate::commands::ChangeResource;
use crate::resources::repair;

/// Thirty seconds of work in two pieces on the first of two resources; the second is taken until 60.
fn in_two(work: Request) -> (Domain, Agreement, Uuid) {
    let mut domain = domain(vec![local("local", 6), local("other", 4)]);
    domain.place(proposal(6, 20, (10, 30))).unwrap();
    domain.place(proposal(3, 10, (0, 10))).unwrap();
    let taken = domain.place(proposal(4, 60, (0, 60))).unwrap().agreement;
    assert_eq!(taken.resource, "other", "the first has three nodes left");
    let agreement = domain.place(work).unwrap().agreement;
    assert_eq!(agreement.resource, "local");
    assert_eq!(slots(&agreement), [(0, 9), (30, 51)]);
    (domain, agreement, taken.id)
}

fn told(domain: &Domain, id: Uuid, words: &str) -> bool {
    domain
        .told
        .iter()
        .any(|(told, line)| *told == id && line.contains(words))
}

#[test]
fn where_its_resource_fails_before_it_has_begun_all_of_it_goes_to_another() {
    let (mut domain, agreement, _) = in_two(cut(3, 30, (3, 100), (0, 200)));
    domain.nodes_down(6);
    let after = domain.of(agreement.id);
    assert_eq!(
        (after.resource.as_str(), slots(after)),
        ("other", vec![(60, 69), (69, 90)])
    );
    assert_eq!((after.duration, after.deadline), (30, Time(200)));
    assert!(told(&domain, agreement.id, "to other, 60 seconds later"));
    domain.check_rebuilt();
    // It is carried out there, piece by piece.
    domain.begin(60);
    domain.now = 69;
    domain.end(agreement.id, RunOutcome::Checkpointed);
    domain.begin(69);
    assert_eq!(domain.of(agreement.id).slot_number(), 2);
    domain.now = 80;
    domain.end(agreement.id, RunOutcome::Completed);
    assert!(!domain.known.contains_key(&agreement.id));
    domain.check();
}

#[test]
fn lost_in_its_first_piece_it_is_run_again_elsewhere_where_its_resource_was_retired_meanwhile() {
    let (mut domain, agreement, _) = in_two(cut(3, 30, (3, 100), (0, 200)));
    domain.settings.restarting = ["t".to_owned()].into();
    domain.begin(0);
    let retires = ChangeResource {
        id: Uuid::now_v7(),
        party: "operator".to_owned(),
        name: "local".to_owned(),
        verb: ResourceVerb::Retire,
    };
    domain.decide(|decider| decider.decide(retires)).unwrap();
    domain.now = 3;
    domain.end(agreement.id, RunOutcome::Lost);
    let after = domain.of(agreement.id);
    assert_eq!(
        (after.resource.as_str(), slots(after)),
        ("other", vec![(60, 69), (69, 90)])
    );
    assert_eq!((after.service, after.restarts()), (ServiceState::NotReady, 1));
    domain.check_rebuilt();
}

#[test]
fn it_stays_where_its_work_is_saved_and_where_others_may_not_have_it() {
    let (mut domain, agreement, _) = in_two(cut(3, 30, (3, 100), (0, 200)));
    domain.begin(0);
    domain.now = 9;
    domain.end(agreement.id, RunOutcome::Checkpointed);
    domain.nodes_down(6);
    assert!(
        !domain.known.contains_key(&agreement.id),
        "what it has saved is there"
    );

    let rack = |name: &str| Filter::Word {
        attribute: "rack".into(),
        is: name.into(),
    };
    let mut asked = cut(3, 30, (3, 100), (0, 200));
    asked.filters = vec![rack("a")];
    let mut resources = vec![local("local", 6), local("other", 4)];
    for (resource, name) in resources.iter_mut().zip(["a", "b"]) {
        let word = scheduler::domain::Attribute::Word(name.into());
        resource.attributes.insert("rack".into(), word);
    }
    let mut domain = self::domain(resources);
    domain.place(proposal(6, 20, (10, 30))).unwrap();
    let agreement = domain.place(asked).unwrap().agreement;
    assert_eq!(slots(&agreement), [(0, 9), (30, 51)]);
    domain.nodes_down(6);
    assert!(
        !domain.known.contains_key(&agreement.id),
        "the other is not what it asked for"
    );
    domain.check();
}

#[test]
fn what_runs_does_not_go_to_another_resource_with_the_piece_that_follows() {
    let (mut domain, agreement, _) = in_two(cut(3, 30, (3, 100), (0, 200)));
    domain.begin(0);
    let drained = NodeReport {
        states: vec![NodeState::Drained; 6],
        ..NodeReport::default()
    };
    domain
        .decide(|decider| repair::repair_nodes(decider, "local", Reporter::Operator, &drained))
        .unwrap();
    domain.check();
    let nowhere = "no other place in its window for piece 2 of 2";
    assert!(told(&domain, agreement.id, nowhere), "{:?}", domain.told);
}

#[test]
fn it_goes_to_another_resource_to_let_others_in_and_comes_back_where_that_does_not() {
    let (mut domain, agreement, taken) = in_two(cut(3, 30, (3, 100), (0, 60)));
    let before = domain.of(agreement.id).clone();
    // The other resource is taken: there is no room for both.
    domain.place(proposal(6, 25, (30, 60))).unwrap_err();
    assert_eq!(domain.of(agreement.id), &before);
    domain.check_rebuilt();
    domain
        .decide(|decider| decider.decide(Terminate::of(taken, None)))
        .unwrap();
    // Nor is there a place for work that is too long on every resource.
    domain.place(proposal(6, 40, (20, 60))).unwrap_err();
    assert_eq!(domain.of(agreement.id), &before);
    let newcomer = domain.place(proposal(6, 25, (30, 60))).unwrap().agreement;
    assert_eq!(newcomer.resource, "local");
    let after = domain.of(agreement.id);
    assert_eq!(
        (after.resource.as_str(), slots(after)),
        ("other", vec![(1, 10), (10, 31)])
    );
    assert!(told(&domain, agreement.id, "to let another agreement in"));
    domain.check();
    domain.check_rebuilt();
}
