//! The terms of an agreement: compositors and the four kinds of term (GFD.192, section 4.2).

mod alternatives;

pub use alternatives::{ALTERNATIVES_MAX, Alternative, CompositorChoice};

use crate::allocation::{self, AllocationTimeConstraint};
use crate::document::{Fragment, Node};
use crate::endpoint::{self, EndpointReference};
use crate::guarantees::{self, GuaranteeTerm};
use crate::job::{self, JobDefinition};
use crate::ns::{ARP, BSP, JSDL, WSA, WSAG};
use crate::reader::{Check, Sequence};
use crate::scheduling::{self, Scheduling};
use crate::violation::ViolationKind;
use crate::writer::Xml;

/// `wsag:Terms`: at most one `All`. All of its members hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Terms {
    /// Members of the `All`; None where there is no `All` and so nothing is agreed.
    pub all: Option<Vec<TermTree>>,
}

/// A member of a compositor.
#[derive(Debug, Clone, PartialEq)]
pub enum TermTree {
    /// All members hold.
    All(Vec<TermTree>),
    /// Exactly one member holds.
    ExactlyOne(Vec<TermTree>),
    /// At least one member holds.
    OneOrMore(Vec<TermTree>),
    /// A single term.
    Term(Box<Term>),
}

/// A term.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    /// The description of the service.
    ServiceDescription(ServiceDescriptionTerm),
    /// Where the service is.
    ServiceReference(ServiceReference),
    /// The measured properties.
    ServiceProperties(ServiceProperties),
    /// A guarantee.
    Guarantee(GuaranteeTerm),
}

impl Term {
    /// The term's name.
    pub fn name(&self) -> &str {
        match self {
            Term::ServiceDescription(term) => &term.name,
            Term::ServiceReference(term) => &term.name,
            Term::ServiceProperties(term) => &term.name,
            Term::Guarantee(term) => &term.name,
        }
    }
}

/// `wsag:ServiceDescriptionTerm`.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceDescriptionTerm {
    /// Name of the term.
    pub name: String,
    /// The service that it describes a part of.
    pub service_name: String,
    /// The one element in it.
    pub content: ServiceDescription,
}

/// The term languages that the service knows.
#[derive(Debug, Clone, PartialEq)]
pub enum ServiceDescription {
    /// The job: `jsdl:JobDefinition`.
    JobDefinition(Box<JobDefinition>),
    /// When: `arp:AllocationTimeConstraint`.
    AllocationTime(AllocationTimeConstraint),
    /// How: `bsp:Scheduling`.
    Scheduling(Box<Scheduling>),
}

/// `wsag:ServiceReference`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceReference {
    /// Name of the term.
    pub name: String,
    /// The service that it refers to.
    pub service_name: String,
    /// Where it is.
    pub reference: EndpointReference,
}

/// `wsag:ServiceProperties`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceProperties {
    /// Name of the term.
    pub name: String,
    /// The service that is measured.
    pub service_name: String,
    /// At least one variable.
    pub variables: Vec<Variable>,
}

/// `wsag:Variable`: a name for something measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Name, for expressions.
    pub name: String,
    /// Its type or unit, such as `xs:dateTime`.
    pub metric: String,
    /// XPath to where it stands.
    pub location: String,
}

impl Terms {
    /// Every term in document order, in all compositors.
    pub fn flatten(&self) -> Vec<&Term> {
        let mut found = Vec::new();
        for tree in self.all.iter().flatten() {
            tree.collect(&mut found);
        }
        found
    }

    /// Whether all terms hold together, that is, whether there is no `ExactlyOne` and no `OneOrMore` with more
    /// than one member.
    pub fn is_conjunctive(&self) -> bool {
        self.all.iter().flatten().all(TermTree::is_conjunctive)
    }

    /// The service description terms in document order.
    pub fn descriptions(&self) -> impl Iterator<Item = &ServiceDescriptionTerm> {
        self.flatten().into_iter().filter_map(|term| match term {
            Term::ServiceDescription(term) => Some(term),
            _ => None,
        })
    }

    /// The guarantee terms in document order.
    pub fn guarantees(&self) -> impl Iterator<Item = &GuaranteeTerm> {
        self.flatten().into_iter().filter_map(|term| match term {
            Term::Guarantee(term) => Some(term),
            _ => None,
        })
    }

    /// The service properties in document order.
    pub fn properties(&self) -> impl Iterator<Item = &ServiceProperties> {
        self.flatten().into_iter().filter_map(|term| match term {
            Term::ServiceProperties(term) => Some(term),
            _ => None,
        })
    }

    /// As a fragment that can stand in an agreement's properties.
    pub fn to_fragment(&self) -> Fragment {
        let mut xml = Xml::default();
        self.write(&mut xml);
        Fragment::written(xml.finish())
    }

    /// Writes the element.
    pub(crate) fn write(&self, xml: &mut Xml) {
        xml.start_with("wsag:Terms", &["wsag", "bsp"]);
        if let Some(members) = &self.all {
            write_compositor(xml, "wsag:All", members);
        }
        xml.end();
    }
}

impl TermTree {
    fn collect<'t>(&'t self, found: &mut Vec<&'t Term>) {
        match self {
            TermTree::Term(term) => found.push(term.as_ref()),
            TermTree::All(members) | TermTree::ExactlyOne(members) | TermTree::OneOrMore(members) => {
                for member in members {
                    member.collect(found);
                }
            }
        }
    }

    fn is_conjunctive(&self) -> bool {
        match self {
            TermTree::Term(_) => true,
            TermTree::All(members) => members.iter().all(TermTree::is_conjunctive),
            TermTree::ExactlyOne(members) | TermTree::OneOrMore(members) => {
                members.len() == 1 && members[0].is_conjunctive()
            }
        }
    }
}

/// Reads the terms; members that could not be read have left a violation.
pub(crate) fn read(check: &mut Check, node: Node<'_>) -> Terms {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let all = sequence.optional(WSAG, "All");
    sequence.end(check);
    Terms {
        all: all.map(|node| read_compositor(check, node)),
    }
}

/// The guard bounds the depth of this recursion.
fn read_compositor(check: &mut Check, node: Node<'_>) -> Vec<TermTree> {
    const MEMBERS: &str = "wsag:All, wsag:ExactlyOne, wsag:OneOrMore, wsag:ServiceDescriptionTerm, \
                           wsag:ServiceReference, wsag:ServiceProperties or wsag:GuaranteeTerm";
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let mut members = Vec::new();
    let mut empty = true;
    while let Some(child) = sequence.any() {
        empty = false;
        let name = if child.namespace() == WSAG {
            child.local()
        } else {
            ""
        };
        members.extend(match name {
            "All" => Some(TermTree::All(read_compositor(check, child))),
            "ExactlyOne" => Some(TermTree::ExactlyOne(read_compositor(check, child))),
            "OneOrMore" => Some(TermTree::OneOrMore(read_compositor(check, child))),
            _ if TERMS.contains(&name) => read_term(check, child).map(|term| TermTree::Term(Box::new(term))),
            _ => {
                check.structure(child, format!("{MEMBERS} is expected here"));
                None
            }
        });
    }
    if empty {
        check.structure(
            node,
            format!("{} needs at least one member: {MEMBERS}", node.name()),
        );
    }
    members
}

/// The four kinds of term.
pub(crate) const TERMS: [&str; 4] = [
    "ServiceDescriptionTerm",
    "ServiceReference",
    "ServiceProperties",
    "GuaranteeTerm",
];

/// One of [`TERMS`].
fn read_term(check: &mut Check, node: Node<'_>) -> Option<Term> {
    match node.local() {
        "ServiceDescriptionTerm" => read_description(check, node).map(Term::ServiceDescription),
        "ServiceReference" => read_reference(check, node).map(Term::ServiceReference),
        "ServiceProperties" => read_properties(check, node).map(Term::ServiceProperties),
        _ => guarantees::read(check, node).map(Term::Guarantee),
    }
}

/// A name that is not empty.
pub(crate) fn token(text: &str) -> Result<String, String> {
    if text.is_empty() {
        Err("it may not be empty".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// The names of a term and of its service.
fn read_names(check: &mut Check, node: Node<'_>) -> Option<(String, String)> {
    check.attributes(node, &[(WSAG, "Name"), (WSAG, "ServiceName")]);
    let name = check.required_attribute(node, (WSAG, "Name"), token);
    let service_name = check.required_attribute(node, (WSAG, "ServiceName"), token);
    Some((name?, service_name?))
}

/// The one foreign element of a service description term or service reference.
fn read_single<'d>(check: &mut Check, node: Node<'d>, expected: &str) -> Option<Node<'d>> {
    let mut sequence = Sequence::of(check, node);
    let Some(child) = sequence.any() else {
        check.structure(node, format!("it needs one element in it: {expected}"));
        return None;
    };
    if let Some(second) = sequence.any() {
        check.structure(second, format!("only one element may stand in {}", node.name()));
    }
    Some(child)
}

fn read_description(check: &mut Check, node: Node<'_>) -> Option<ServiceDescriptionTerm> {
    const KNOWN: &str = "jsdl:JobDefinition, arp:AllocationTimeConstraint or bsp:Scheduling";
    let names = read_names(check, node);
    let child = read_single(check, node, KNOWN)?;
    let content = if child.is(JSDL, "JobDefinition") {
        job::read(check, child).map(|job| ServiceDescription::JobDefinition(Box::new(job)))
    } else if child.is(ARP, "AllocationTimeConstraint") {
        Some(ServiceDescription::AllocationTime(allocation::read(check, child)))
    } else if child.is(BSP, "Scheduling") {
        Some(ServiceDescription::Scheduling(Box::new(scheduling::read(
            check, child,
        ))))
    } else {
        check.add(
            ViolationKind::UnknownTerm,
            child,
            format!("not a term that is known here; {KNOWN} is expected"),
        );
        None
    };
    let (name, service_name) = names?;
    Some(ServiceDescriptionTerm {
        name,
        service_name,
        content: content?,
    })
}

fn read_reference(check: &mut Check, node: Node<'_>) -> Option<ServiceReference> {
    const KNOWN: &str = "wsa:EndpointReference";
    let names = read_names(check, node);
    let child = read_single(check, node, KNOWN)?;
    let reference = if child.is(WSA, "EndpointReference") {
        endpoint::read(check, child)
    } else {
        check.add(
            ViolationKind::UnknownTerm,
            child,
            format!("not a term that is known here; {KNOWN} is expected"),
        );
        None
    };
    let (name, service_name) = names?;
    Some(ServiceReference {
        name,
        service_name,
        reference: reference?,
    })
}

fn read_properties(check: &mut Check, node: Node<'_>) -> Option<ServiceProperties> {
    let names = read_names(check, node);
    let mut sequence = Sequence::of(check, node);
    let set = sequence.required(check, WSAG, "VariableSet");
    sequence.end(check);
    let set = set?;
    check.attributes(set, &[]);
    let mut sequence = Sequence::of(check, set);
    let nodes = sequence.at_least_one(check, WSAG, "Variable");
    sequence.end(check);
    let variables = nodes
        .into_iter()
        .filter_map(|node| read_variable(check, node))
        .collect();
    let (name, service_name) = names?;
    Some(ServiceProperties {
        name,
        service_name,
        variables,
    })
}

fn read_variable(check: &mut Check, node: Node<'_>) -> Option<Variable> {
    check.attributes(node, &[(WSAG, "Name"), (WSAG, "Metric")]);
    let name = check.required_attribute(node, (WSAG, "Name"), token);
    let metric = check.required_attribute(node, (WSAG, "Metric"), token);
    let mut sequence = Sequence::of(check, node);
    let location = sequence
        .required(check, WSAG, "Location")
        .and_then(|node| check.string(node));
    sequence.end(check);
    Some(Variable {
        name: name?,
        metric: metric?,
        location: location?,
    })
}

fn write_compositor(xml: &mut Xml, name: &'static str, members: &[TermTree]) {
    xml.start(name);
    for member in members {
        match member {
            TermTree::All(members) => write_compositor(xml, "wsag:All", members),
            TermTree::ExactlyOne(members) => write_compositor(xml, "wsag:ExactlyOne", members),
            TermTree::OneOrMore(members) => write_compositor(xml, "wsag:OneOrMore", members),
            TermTree::Term(term) => write_term(xml, term),
        }
    }
    xml.end();
}

fn write_term(xml: &mut Xml, term: &Term) {
    match term {
        Term::ServiceDescription(term) => {
            xml.start("wsag:ServiceDescriptionTerm");
            xml.attribute("wsag:Name", &term.name);
            xml.attribute("wsag:ServiceName", &term.service_name);
            match &term.content {
                ServiceDescription::JobDefinition(job) => job.write(xml),
                ServiceDescription::AllocationTime(window) => window.write(xml),
                ServiceDescription::Scheduling(scheduling) => scheduling.write(xml),
            }
            xml.end();
        }
        Term::ServiceReference(term) => {
            xml.start("wsag:ServiceReference");
            xml.attribute("wsag:Name", &term.name);
            xml.attribute("wsag:ServiceName", &term.service_name);
            term.reference.write_alone(xml);
            xml.end();
        }
        Term::ServiceProperties(term) => {
            xml.start("wsag:ServiceProperties");
            xml.attribute("wsag:Name", &term.name);
            xml.attribute("wsag:ServiceName", &term.service_name);
            xml.start("wsag:VariableSet");
            for variable in &term.variables {
                xml.start("wsag:Variable");
                xml.attribute("wsag:Name", &variable.name);
                xml.attribute("wsag:Metric", &variable.metric);
                xml.element("wsag:Location", &variable.location);
                xml.end();
            }
            xml.end();
            xml.end();
        }
        Term::Guarantee(term) => guarantees::write(xml, term),
    }
}
