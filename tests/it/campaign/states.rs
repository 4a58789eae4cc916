//! The states of all objects over HTTP: each moves along an edge that the protocol has.

use super::http::World;

impl World {
    /// Every object in an answer is there, in a state that its last one leads to.
    pub(super) async fn look_at_everything(&mut self) {
        for (party, id) in self.agreements.clone() {
            let shown = self.client(party).get_json(&format!("/agreements/{id}")).await;
            let state = shown["state"].as_str().expect("a state").to_owned();
            self.moves(format!("agreement {id}"), state, agreement_may);
        }
        for (party, id, _) in self.negotiations.clone() {
            let shown = self.client(party).get_json(&format!("/negotiations/{id}")).await;
            let state = shown["state"].as_str().expect("a state").to_owned();
            self.moves(format!("negotiation {id}"), state, |from, to| {
                from == to || from == "open"
            });
            for offer in shown["offers"].as_array().into_iter().flatten() {
                let name = format!("offer {} of {id}", offer["id"].as_str().expect("an id"));
                let state = offer["state"].as_str().expect("a state").to_owned();
                // An offer may become rejected, and nothing else.
                self.moves(name.clone(), state, |from, to| from == to || to == "Rejected");
                if let Some(agreement) = offer["agreement"].as_str() {
                    self.moves(format!("{name} made"), agreement.to_owned(), |from, to| {
                        from == to
                    });
                }
            }
        }
    }

    fn moves(&mut self, what: String, to: String, may: impl Fn(&str, &str) -> bool) {
        if let Some(from) = self.states.get(&what) {
            assert!(may(from, &to), "{what} was {from} and is {to}");
        }
        self.states.insert(what, to);
    }
}

/// Whether an agreement may come from one state to another, in any number of steps.
fn agreement_may(from: &str, to: &str) -> bool {
    let next: &[&str] = match from {
        "Pending" => return true,
        "PendingAndTerminating" => &["Terminated", "Rejected"],
        "Observed" => &["ObservedAndTerminating", "Complete", "Terminated"],
        "ObservedAndTerminating" => &["Complete", "Terminated"],
        _ => &[],
    };
    from == to || next.contains(&to)
}
