//! The frame of every page: its title, the visitor, and the navigation.

use std::cell::OnceCell;

use super::zone::Zone;
use super::{OFFERS, OPERATOR_PAGES, OPERATOR_SECTIONS, SECTIONS};

tokio::task_local! {
    /// The path of the request that is answered, for the navigation: every page has it.
    pub(super) static PATH: String;
    /// The frame for the visitor of the request, once that is known: the page of an error has it, too.
    pub(super) static VISITOR: OnceCell<Frame>;
}

/// The path of the request that is answered; empty outside of one.
pub(super) fn path_of_request() -> String {
    PATH.try_with(String::clone).unwrap_or_default()
}

/// The frame of every page.
#[derive(Clone)]
pub(super) struct Frame {
    /// The heading of the browser's window.
    pub(super) title: String,
    /// The party of the signed-in visitor.
    pub(super) party: Option<String>,
    /// Whether it is an operator.
    pub(super) is_operator: bool,
    /// Whether it may change something.
    pub(super) may_act: bool,
    /// The value that every form brings back; empty where the visitor is not signed in.
    pub(super) csrf: String,
    /// In which times are shown.
    pub(super) zone: Zone,
    /// The path of the page.
    pub(super) path: String,
    /// How many of its reservations the provider proposes another place for.
    pub(super) proposals: usize,
}

/// A part of the portal in the navigation.
pub(super) struct Section {
    pub(super) label: &'static str,
    pub(super) path: &'static str,
    /// The value of `aria-current`, where the page is in this part.
    pub(super) current: Option<&'static str>,
    /// What waits there for an answer.
    pub(super) waiting: usize,
}

impl Frame {
    /// The frame for a visitor without a session, or before the session is known.
    pub(super) fn outside(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            party: None,
            is_operator: false,
            may_act: false,
            csrf: String::new(),
            zone: Zone::present(),
            path: path_of_request(),
            proposals: 0,
        }
    }

    /// The frame for the visitor of the request that is answered, as far as that is known.
    pub(super) fn of_request(title: impl Into<String>) -> Self {
        let known = VISITOR.try_with(|known| known.get().cloned());
        match known.ok().flatten() {
            Some(frame) => Self {
                title: title.into(),
                ..frame
            },
            None => Self::outside(title),
        }
    }

    /// The navigation.
    pub(super) fn sections(&self) -> Vec<Section> {
        let operators: &[_] = if self.is_operator { &OPERATOR_SECTIONS } else { &[] };
        let sections = SECTIONS.iter().chain(operators);
        let section = |&(label, path, others): &(&'static str, &'static str, &[&str])| Section {
            label,
            path,
            current: if self.path == path {
                Some("page")
            } else {
                let is_inside = others.iter().any(|other| self.path.starts_with(other));
                is_inside.then_some("true")
            },
            waiting: if path == OFFERS { self.proposals } else { 0 },
        };
        sections.map(section).collect()
    }

    /// The menu of the operators' pages.
    pub(super) fn operator_pages(&self) -> Vec<Section> {
        let section = |&(path, label): &(&'static str, &'static str)| Section {
            label,
            path,
            current: (self.path == path).then_some("page"),
            waiting: 0,
        };
        OPERATOR_PAGES.iter().map(section).collect()
    }
}
