//! Lists of our own: a party's agreements and negotiations, and the events of an agreement.

use crate::states::AgreementState;
use crate::xml::names::Named;
use crate::xml::time::DateTime;
use crate::xml::writer::Xml;

/// `bsp:Agreements`: one page of a party's agreements.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgreementList {
    /// The agreements of this page.
    pub agreements: Vec<ListedAgreement>,
    /// Cursor of the next page; None on the last one.
    pub next: Option<String>,
}

/// `bsp:Agreement`: an agreement in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedAgreement {
    /// Its identity.
    pub agreement_id: String,
    /// Its name.
    pub name: Option<String>,
    /// Where to ask for it.
    pub address: Option<String>,
    /// Its state.
    pub state: AgreementState,
    /// Planned start, while it is planned.
    pub planned_start: Option<DateTime>,
    /// Planned end, while it is planned.
    pub planned_end: Option<DateTime>,
    /// Granted number of nodes.
    pub nodes: Option<u32>,
}

/// `bsp:Timeline`: the events of an agreement, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timeline {
    /// The agreement.
    pub agreement_id: String,
    /// Its events.
    pub events: Vec<Event>,
}

/// `bsp:Event`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: DateTime,
    /// The kind of the event, in a stable word.
    pub kind: String,
    /// More, for people.
    pub detail: Option<String>,
}

/// `bsp:Files`: files of a party, or of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileList {
    /// The files.
    pub files: Vec<ListedFile>,
    /// Bytes that they may have together.
    pub quota_bytes: Option<u64>,
}

/// `bsp:File`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// When it was written.
    pub modified: DateTime,
}

impl FileList {
    /// As a document of its own.
    pub fn to_xml(&self) -> String {
        let mut xml = Xml::document("bsp:Files", &["bsp"]);
        for file in &self.files {
            xml.start("bsp:File");
            xml.element("bsp:Name", &file.name);
            xml.element("bsp:Bytes", file.bytes);
            xml.element("bsp:Modified", file.modified);
            xml.end();
        }
        xml.optional_element("bsp:QuotaBytes", self.quota_bytes);
        xml.finish()
    }
}

impl AgreementList {
    /// As a document of its own.
    pub fn to_xml(&self) -> String {
        let mut xml = Xml::document("bsp:Agreements", &["bsp"]);
        for agreement in &self.agreements {
            xml.start("bsp:Agreement");
            xml.element("bsp:AgreementId", &agreement.agreement_id);
            xml.optional_element("bsp:Name", agreement.name.as_deref());
            xml.optional_element("bsp:Address", agreement.address.as_deref());
            xml.element("bsp:State", agreement.state.name());
            xml.optional_element("bsp:PlannedStart", agreement.planned_start);
            xml.optional_element("bsp:PlannedEnd", agreement.planned_end);
            xml.optional_element("bsp:Nodes", agreement.nodes);
            xml.end();
        }
        xml.optional_element("bsp:Next", self.next.as_deref());
        xml.finish()
    }
}

impl Timeline {
    /// As a document of its own.
    pub fn to_xml(&self) -> String {
        let mut xml = Xml::document("bsp:Timeline", &["bsp"]);
        xml.element("bsp:AgreementId", &self.agreement_id);
        for event in &self.events {
            xml.start("bsp:Event");
            xml.element("bsp:At", event.at);
            xml.element("bsp:Kind", &event.kind);
            xml.optional_element("bsp:Detail", event.detail.as_deref());
            xml.end();
        }
        xml.finish()
    }
}

/// A negotiation in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedNegotiation<'a> {
    /// Its identity.
    pub id: String,
    /// Where to ask for it.
    pub address: String,
    /// The party that asked for it.
    pub party: &'a str,
    /// The agreement that it is to replace.
    pub agreement: Option<String>,
    /// Its state, in a stable word.
    pub state: &'a str,
    /// When it was opened.
    pub created: &'a str,
    /// From when on nothing more is negotiated or accepted.
    pub expires: &'a str,
    /// Why the provider has opened it by itself, in a stable word.
    pub proposed: Option<&'a str>,
    /// The `OfferId`s of its offers that can be accepted now.
    pub offers: Vec<&'a str>,
}

/// `bsp:Negotiations`: one page of them, and the cursor of the next one.
pub fn negotiations(listed: &[ListedNegotiation<'_>], next: Option<&str>) -> String {
    let mut xml = Xml::document("bsp:Negotiations", &["bsp"]);
    for negotiation in listed {
        xml.start("bsp:Negotiation");
        xml.element("bsp:NegotiationId", &negotiation.id);
        xml.element("bsp:Address", &negotiation.address);
        xml.element("bsp:Party", negotiation.party);
        xml.optional_element("bsp:AgreementId", negotiation.agreement.as_deref());
        xml.element("bsp:State", negotiation.state);
        xml.element("bsp:Created", negotiation.created);
        xml.element("bsp:Expires", negotiation.expires);
        xml.optional_element("bsp:Proposed", negotiation.proposed);
        for offer in &negotiation.offers {
            xml.element("bsp:OfferId", offer);
        }
        xml.end();
    }
    xml.optional_element("bsp:Next", next);
    xml.finish()
}

/// A line of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrailedLine<'a> {
    /// Its place in the chain, from 1.
    pub number: i64,
    /// When.
    pub at: DateTime,
    /// The kind of the event, in a stable word.
    pub kind: &'a str,
    /// The id of its subject.
    pub subject: String,
    /// The negotiation that it belongs to.
    pub negotiation: Option<String>,
    /// Its party.
    pub party: Option<&'a str>,
    /// More, for people.
    pub detail: &'a str,
    /// The chain's hash up to here.
    pub hash: &'a str,
}

/// `bsp:AuditTrail`: lines of it, and the number before the next page.
pub fn audit_trail(lines: &[TrailedLine<'_>], next: Option<i64>) -> String {
    let mut xml = Xml::document("bsp:AuditTrail", &["bsp"]);
    for line in lines {
        xml.start("bsp:Line");
        xml.element("bsp:Number", line.number);
        xml.element("bsp:At", line.at);
        xml.element("bsp:Kind", line.kind);
        xml.element("bsp:Subject", &line.subject);
        xml.optional_element("bsp:NegotiationId", line.negotiation.as_deref());
        xml.optional_element("bsp:Party", line.party);
        xml.optional_element(
            "bsp:Detail",
            Some(line.detail).filter(|detail| !detail.is_empty()),
        );
        xml.element("bsp:Hash", line.hash);
        xml.end();
    }
    xml.optional_element("bsp:Next", next);
    xml.finish()
}

/// `bsp:Availability`: when this many nodes of a class of resources are free, between two dateTimes.
pub fn availability(nodes: u32, kind: Option<&str>, within: (&str, &str), free: &[(&str, &str)]) -> String {
    let mut xml = Xml::document("bsp:Availability", &["bsp"]);
    xml.element("bsp:Nodes", nodes);
    xml.optional_element("bsp:Kind", kind);
    xml.element("bsp:Start", within.0);
    xml.element("bsp:End", within.1);
    for (start, end) in free {
        xml.start("bsp:Free");
        xml.element("bsp:Start", start);
        xml.element("bsp:End", end);
        xml.end();
    }
    xml.finish()
}
