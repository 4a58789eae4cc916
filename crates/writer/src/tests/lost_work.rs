//! Work that was lost while something of it still runs.

use domain::resources::{NodeReport, NodeState, Reporter};
use store::agreements;

use super::*;

impl Domain {
    async fn running(&self) -> Vec<Uuid> {
        let running = self.planner.send(ListRunning).await.unwrap();
        running.iter().map(|agreement| agreement.id).collect()
    }
}

#[tokio::test]
async fn what_may_be_left_of_lost_work_is_looked_after_though_the_service_is_killed() {
    let domain = Domain::start().await;
    let id = domain.place(with_job(proposal(2, 100, 0..100))).await.unwrap().id;
    let nothing = domain.place(proposal(2, 100, 0..100)).await.unwrap().id;
    domain.planner.send(BeginDue).await.unwrap();
    let down = NodeReport {
        states: vec![NodeState::Down; 4],
        ..NodeReport::default()
    };
    let said = domain.planner.send(SetNodes {
        resource: "local".into(),
        by: Reporter::Operator,
        report: down,
    });
    assert_eq!(said.await.unwrap().lost, 2);
    assert_eq!(domain.running().await, [id], "there is nothing of {nothing}");
    let domain = domain.restart().await;
    assert_eq!(domain.running().await, [id]);
    let end = ended(RunOutcome::Terminated, 0, 1);
    domain
        .planner
        .send(ReportEnded {
            run: Run::first(id),
            end,
        })
        .await
        .unwrap();
    assert_eq!(domain.running().await, [] as [Uuid; 0]);
    let over = agreements::agreement(&domain.store, id).await.unwrap().unwrap();
    assert_eq!(over.outcome, Some(RunOutcome::Lost), "its end changes nothing");
    // Also long after its slot: a cluster that was never asked has its records.
    domain.turn(10 * 86_400);
    let domain = domain.restart().await;
    domain.planner.send(BeginDue).await.unwrap();
    assert_eq!(domain.running().await, [id]);
    domain.turn(10 * 86_400 + 3_601);
    domain.planner.send(BeginDue).await.unwrap();
    assert_eq!(
        domain.running().await,
        [] as [Uuid; 0],
        "who never answers is not asked for ever"
    );
    domain.turn(31 * 86_400);
    let domain = domain.restart().await;
    assert_eq!(domain.running().await, [] as [Uuid; 0]);
}

#[tokio::test]
async fn an_agreement_lost_before_it_began_has_had_no_nodes_also_as_it_is_stored() {
    let domain = Domain::start().await;
    let id = domain.place(proposal(3, 20, 0..20)).await.unwrap().id;
    let mut states = vec![NodeState::Down; 2];
    states.resize(4, NodeState::Up);
    let said = domain.planner.send(SetNodes {
        resource: "local".into(),
        by: Reporter::Operator,
        report: NodeReport {
            states,
            ..NodeReport::default()
        },
    });
    assert_eq!(said.await.unwrap().broken, 1);
    // Its place in this second is free at once.
    domain.place(proposal(2, 20, 0..20)).await.unwrap();
    let over = agreements::agreement(&domain.store, id).await.unwrap().unwrap();
    assert_eq!((over.outcome, over.loads()), (Some(RunOutcome::Lost), vec![]));
    assert_eq!(over.slots.pieces(), []);
    domain.assert_verified().await;
    domain.restart().await.assert_verified().await;
}
