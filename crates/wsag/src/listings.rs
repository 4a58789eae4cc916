//! Lists of our own: a party's agreements and negotiations, and the events of an agreement.

use crate::states::AgreementState;
use crate::xml::{DateTime, Field, WrittenValue, Xml, written};

written! {
    /// `bsp:Agreements`: one page of a party's agreements.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct AgreementList document "bsp:Agreements" {
        /// The agreements of this page.
        pub agreements: Vec<ListedAgreement> = "bsp:Agreement",
        /// Cursor of the next page; None on the last one.
        pub next: Option<String> = "bsp:Next",
    }
}

written! {
    /// `bsp:Agreement`: an agreement in a list.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ListedAgreement {
        /// Its identity.
        pub agreement_id: String = "bsp:AgreementId",
        /// Its name.
        pub name: Option<String> = "bsp:Name",
        /// Where to ask for it.
        pub address: Option<String> = "bsp:Address",
        /// Its state.
        pub state: AgreementState = "bsp:State",
        /// Planned start, while it is planned.
        pub planned_start: Option<DateTime> = "bsp:PlannedStart",
        /// Planned end, while it is planned.
        pub planned_end: Option<DateTime> = "bsp:PlannedEnd",
        /// Granted number of nodes.
        pub nodes: Option<u32> = "bsp:Nodes",
    }
}

written! {
    /// `bsp:Timeline`: the events of an agreement, oldest first.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct Timeline document "bsp:Timeline" {
        /// The agreement.
        pub agreement_id: String = "bsp:AgreementId",
        /// Its events.
        pub events: Vec<Event> = "bsp:Event",
    }
}

written! {
    /// `bsp:Event`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Event {
        /// When.
        pub at: DateTime = "bsp:At",
        /// The kind of the event, in a stable word.
        pub kind: String = "bsp:Kind",
        /// More, for people.
        pub detail: Option<String> = "bsp:Detail",
    }
}

written! {
    /// `bsp:Files`: files of a party, or of a job.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct FileList document "bsp:Files" {
        /// The files.
        pub files: Vec<ListedFile> = "bsp:File",
        /// Bytes that they may have together.
        pub quota_bytes: Option<u64> = "bsp:QuotaBytes",
    }
}

written! {
    /// `bsp:File`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ListedFile {
        /// Its name.
        pub name: String = "bsp:Name",
        /// Its length.
        pub bytes: u64 = "bsp:Bytes",
        /// When it was written.
        pub modified: DateTime = "bsp:Modified",
    }
}

written! {
    /// A negotiation in a list.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ListedNegotiation<'a> {
        /// Its identity.
        pub id: String = "bsp:NegotiationId",
        /// Where to ask for it.
        pub address: String = "bsp:Address",
        /// The party that asked for it.
        pub party: &'a str = "bsp:Party",
        /// The agreement that it is to replace.
        pub agreement: Option<String> = "bsp:AgreementId",
        /// Its state, in a stable word.
        pub state: &'a str = "bsp:State",
        /// When it was opened.
        pub created: &'a str = "bsp:Created",
        /// From when on nothing more is negotiated or accepted.
        pub expires: &'a str = "bsp:Expires",
        /// Why the provider has opened it by itself, in a stable word.
        pub proposed: Option<&'a str> = "bsp:Proposed",
        /// The `OfferId`s of its offers that can be accepted now.
        pub offers: Vec<&'a str> = "bsp:OfferId",
    }
}

/// `bsp:Negotiations`: one page of them, and the cursor of the next one.
pub fn negotiations_listing(listed: &[ListedNegotiation<'_>], next: Option<&str>) -> String {
    write_page("bsp:Negotiations", "bsp:Negotiation", listed, &next)
}

written! {
    /// A line of the audit trail.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct TrailedLine<'a> {
        /// Its place in the chain, from 1.
        pub number: i64 = "bsp:Number",
        /// When.
        pub at: DateTime = "bsp:At",
        /// The kind of the event, in a stable word.
        pub kind: &'a str = "bsp:Kind",
        /// The id of its subject.
        pub subject: String = "bsp:Subject",
        /// The negotiation that it belongs to.
        pub negotiation: Option<String> = "bsp:NegotiationId",
        /// Its party.
        pub party: Option<&'a str> = "bsp:Party",
        /// More, for people, where there is more.
        pub detail: Option<&'a str> = "bsp:Detail",
        /// The chain's hash up to here.
        pub hash: &'a str = "bsp:Hash",
    }
}

/// `bsp:AuditTrail`: lines of it, and the number before the next page.
pub fn audit_trail_listing(lines: &[TrailedLine<'_>], next: Option<i64>) -> String {
    write_page("bsp:AuditTrail", "bsp:Line", lines, &next)
}

fn write_page(
    root: &'static str,
    name: &'static str,
    listed: &[impl WrittenValue],
    next: &impl Field,
) -> String {
    let mut xml = Xml::document(root, &["bsp"]);
    xml.add_all(name, listed);
    xml.add("bsp:Next", next);
    xml.finish()
}

/// `bsp:Availability`: when this many nodes of a class of resources are free, between two dateTimes.
pub fn availability_listing(
    nodes: u32,
    kind: Option<&str>,
    within: (&str, &str),
    free: &[(&str, &str)],
) -> String {
    let mut xml = Xml::document("bsp:Availability", &["bsp"]);
    xml.add("bsp:Nodes", &nodes);
    xml.add("bsp:Kind", &kind);
    xml.add("bsp:Start", &within.0);
    xml.add("bsp:End", &within.1);
    for (start, end) in free {
        xml.start("bsp:Free");
        xml.add("bsp:Start", start);
        xml.add("bsp:End", end);
        xml.end();
    }
    xml.finish()
}
