//! A job that a cluster would refuse is not promised on it: each cluster judges the job before the planner is asked.

use std::time::Duration;

use domain::agreement::{BarredResource, Job, NegotiationOffer, OfferTerms, Shape, Stretch};
use execution::ProspectiveJob;
use execution::dispatcher::SharedExecutor;
use futures_util::future::join_all;
use planner::Request;

use crate::Service;

/// Sizes of one request that a cluster judges: refusals are mostly about the job's owner, and each other size may cost a call.
const SIZES_MAX: usize = 8;

/// How long a request waits for the verdicts of one cluster.
const JUDGED_WITHIN: Duration = Duration::from_secs(10);

/// Seconds that a piece of work lasts at least, by which the limits for time are judged where the work may be cut.
const PIECE_SECONDS: i64 = 60;

/// Notes in a proposal which clusters would refuse its job, and in which of its sizes, `others` among them. A cluster that
/// cannot be asked refuses nothing.
pub(crate) async fn note_barred_clusters(service: &Service, request: &mut Request, others: &[Shape]) {
    let Some(job) = request.job.clone() else {
        return;
    };
    let clusters = service.executors.judges();
    let asked = clusters
        .iter()
        .map(|(resource, cluster)| barred_on_cluster(service, resource, cluster, request, &job, others));
    let barred = asked.map(|asked| tokio::time::timeout(JUDGED_WITHIN, asked));
    let barred = join_all(barred).await;
    let barred = barred.into_iter().filter_map(Result::ok).flatten();
    request.barred.extend(barred);
}

/// Why one cluster would refuse a job; `None` where it takes every size that it was asked about.
async fn barred_on_cluster(
    service: &Service,
    resource: &str,
    cluster: &SharedExecutor,
    request: &Request,
    job: &Job,
    others: &[Shape],
) -> Option<BarredResource> {
    let there = |shape: &Shape| {
        let there = service.planner.size_on(resource, request, *shape)?;
        Some((*shape, there))
    };
    let all: Vec<_> = request.shapes.iter().chain(others).filter_map(there).collect();
    let asked = some_sizes_for_cluster(&all, SIZES_MAX);
    let (mut sizes, mut why) = (Vec::new(), None);
    for (shape, there) in &asked {
        let mut size = *there;
        if request.preemption.is_some() {
            size.duration = PIECE_SECONDS.min(size.duration);
        }
        if let Some(said) = cluster
            .refusal_of(prospective_cluster_job(service, request, job, size))
            .await
        {
            sizes.push(*shape);
            why.get_or_insert(said);
        }
    }
    if sizes.len() == asked.len() {
        sizes.clear();
    }
    why.map(|why| BarredResource {
        resource: resource.to_owned(),
        sizes,
        why,
    })
}

/// The cluster that holds an offer, where it would refuse its job by now: its judgement at the time of the offer may have
/// changed. A cluster that cannot be asked refuses nothing.
pub(crate) async fn barred_by_clusters_now(
    service: &Service,
    offer: &NegotiationOffer,
    request: &Request,
) -> Option<BarredResource> {
    let (terms, job) = (offer.terms.as_ref()?, request.job.as_ref()?);
    let cluster = service
        .executors
        .get(&terms.resource)
        .filter(SharedExecutor::judges_jobs)?;
    let judged = async {
        for size in some_sizes_for_cluster(&sizes_under_cluster_policy(terms), SIZES_MAX) {
            let said = cluster
                .refusal_of(prospective_cluster_job(service, request, job, size))
                .await;
            if said.is_some() {
                return said;
            }
        }
        None
    };
    let why = tokio::time::timeout(JUDGED_WITHIN, judged).await.ok()??;
    Some(BarredResource {
        resource: terms.resource.clone(),
        sizes: Vec::new(),
        why,
    })
}

/// The job of a proposal in this size, as clusters judge it.
fn prospective_cluster_job(service: &Service, request: &Request, job: &Job, size: Shape) -> ProspectiveJob {
    let catalogue = service.catalogue();
    let application = catalogue.find(&job.application, job.version.as_deref());
    ProspectiveJob {
        party: request.party.clone(),
        application: job.application.clone(),
        nodes: size.nodes,
        seconds: size.duration,
        is_isolated: application.is_some_and(|application| application.isolation.is_some()),
    }
}

/// The sizes of the jobs of an offer, each once: the sizes of its slots.
fn sizes_under_cluster_policy(terms: &OfferTerms) -> Vec<Shape> {
    let size = |(slot, nodes): Stretch| Shape {
        nodes,
        duration: slot.duration(),
    };
    let mut sizes: Vec<Shape> = terms.slots.stretches().into_iter().map(size).collect();
    sizes.sort_by_key(|size| (size.nodes, size.duration));
    sizes.dedup();
    sizes
}

/// At most this number of the sizes, at even distances, including the first and the last.
fn some_sizes_for_cluster<T: Copy>(shapes: &[T], most: usize) -> Vec<T> {
    if shapes.len() <= most {
        return shapes.to_vec();
    }
    let last = shapes.len() - 1;
    (0..most).map(|at| shapes[at * last / (most - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use domain::agreement::{OfferKind, Slot, Slots};
    use scheduler::{Interval, Time};

    use super::*;

    #[test]
    fn an_offer_is_judged_by_the_sizes_of_its_slots() {
        let size = |nodes, duration| Shape { nodes, duration };
        let slot = |nodes, start| Slot::planned((Interval::of(Time(start), 600), nodes));
        let mut terms = OfferTerms {
            peer: None,
            resource: "cluster".into(),
            slots: Slots::one((Interval::of(Time(0), 1_800), 4)),
            ready: Time(0),
            deadline: Time(9_000),
            kept_until: Time(1_800),
            deviation: 0.0,
            kind: OfferKind::Exact,
            confidence: None,
            price: None,
            difference: None,
            fee: None,
            fee_why: None,
            discounts: None,
            energy: None,
            promise: None,
        };
        assert_eq!(sizes_under_cluster_policy(&terms), [size(4, 1_800)]);
        terms.slots = Slots::of(vec![slot(4, 0), slot(2, 1_000), slot(4, 2_000)]).unwrap();
        assert_eq!(sizes_under_cluster_policy(&terms), [size(2, 600), size(4, 600)]);
    }

    #[test]
    fn of_many_sizes_some_are_judged_the_largest_and_the_smallest_among_them() {
        let shapes = |count: u32| -> Vec<Shape> {
            let shape = |nodes| Shape { nodes, duration: 60 };
            (1..=count).map(shape).collect()
        };
        assert_eq!(some_sizes_for_cluster(&shapes(3), 8), shapes(3));
        let some: Vec<u32> = some_sizes_for_cluster(&shapes(100), 4)
            .iter()
            .map(|shape| shape.nodes)
            .collect();
        assert_eq!(some, [1, 34, 67, 100]);
    }
}
