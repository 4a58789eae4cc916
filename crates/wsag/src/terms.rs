//! The terms of an agreement: compositors and the four kinds of term (GFD.192, section 4.2).

mod alternatives;
mod paths;

pub use alternatives::{ALTERNATIVES_MAX, Alternative, CompositorChoice};
pub use paths::{path_of_term, path_of_term_content};

use serde::{Deserialize, Serialize};

use crate::endpoint::EndpointReference;
use crate::guarantees::GuaranteeTerm;
use crate::job_definition::JobDefinition;
use crate::scheduling::AllocationTimeConstraint;
use crate::scheduling::Scheduling;
use crate::xml::datatypes::parse_token;
use crate::xml::ns::{self, ARP, BSP, JSDL, WSA, WSAG};
use crate::xml::{
    Document, DocumentCheck, Fragment, Node, Readable, UnchosenTerms, ViolationKind, WrittenValue, Xml,
    element,
};

/// `wsag:Terms`: at most one `All`. All of its members hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Terms {
    /// Members of the `All`; None where there is no `All` and so nothing is agreed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<Vec<TermTree>>,
}

/// A member of a compositor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceDescriptionTerm {
    /// Name of the term.
    pub name: String,
    /// The service that it describes a part of.
    pub service_name: String,
    /// The one element in it.
    pub content: ServiceDescription,
    /// Whether it says when in WSAG4J's words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_wsag4j: bool,
}

/// The term languages that the service knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ServiceDescription {
    /// The job: `jsdl:JobDefinition`.
    JobDefinition(Box<JobDefinition>),
    /// When: `arp:AllocationTimeConstraint`.
    AllocationTime(AllocationTimeConstraint),
    /// How: `bsp:Scheduling`.
    Scheduling(Box<Scheduling>),
    /// Something in a language that is not known here. It is shown again word for word, and decides nothing.
    Other(Box<OtherContent>),
}

impl ServiceDescription {
    /// The element, where it is of a language that is not known here.
    pub fn other(&self) -> Option<&OtherContent> {
        match self {
            ServiceDescription::Other(other) => Some(other),
            _ => None,
        }
    }
}

/// An element of a language that is not known here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherContent {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub local: String,
    /// The element, verbatim.
    pub source: Fragment,
}

/// `wsag:ServiceReference`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceReference {
    /// Name of the term.
    pub name: String,
    /// The service that it refers to.
    pub service_name: String,
    /// Where it is.
    pub reference: EndpointReference,
}

/// `wsag:ServiceProperties`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceProperties {
    /// Name of the term.
    pub name: String,
    /// The service that is measured.
    pub service_name: String,
    /// At least one variable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
}

element! {
    /// `wsag:Variable`: a name for something measured.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Variable {
        /// Name, for expressions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String> = @"wsag:Name" by parse_token,
        /// Its type or unit, such as `xs:dateTime`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub metric: Option<String> = @"wsag:Metric" by parse_token,
        /// XPath to where it stands.
        pub location: String = "wsag:Location",
    }
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
    pub(crate) fn properties(&self) -> impl Iterator<Item = &ServiceProperties> {
        self.flatten().into_iter().filter_map(|term| match term {
            Term::ServiceProperties(term) => Some(term),
            _ => None,
        })
    }

    /// As a fragment that can stand in an agreement's properties.
    pub fn to_fragment(&self) -> Fragment {
        self.fragment("wsag:Terms", Self::PREFIXES)
    }

    /// Leaves out compositors without a member: those of which no member could be read.
    pub(crate) fn leave_out_empty(&mut self) {
        if let Some(members) = &mut self.all {
            members.retain_mut(TermTree::prune_members);
        }
        self.all.take_if(|members| members.is_empty());
    }
}

impl WrittenValue for Terms {
    const PREFIXES: &'static [&'static str] = &["wsag", "bsp"];

    fn write(&self, xml: &mut Xml) {
        if let Some(members) = &self.all {
            write_compositor_of_terms(xml, "wsag:All", members);
        }
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

    /// Whether it is a term or has one, after compositors in it that have none were left out.
    fn prune_members(&mut self) -> bool {
        match self {
            TermTree::Term(_) => true,
            TermTree::All(members) | TermTree::ExactlyOne(members) | TermTree::OneOrMore(members) => {
                members.retain_mut(TermTree::prune_members);
                !members.is_empty()
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

/// Members that could not be read have left a violation.
impl Readable for Terms {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<Terms> {
        check.children(node, |children| {
            Some(Terms {
                all: children.optional(WSAG, "All", read_compositor_of_terms),
            })
        })
    }
}

/// The guard bounds the depth of this recursion.
pub(crate) fn read_compositor_of_terms(check: &mut DocumentCheck, node: Node<'_>) -> Option<Vec<TermTree>> {
    check.children(node, |children| {
        if node.first_child().is_none() {
            let message = format!("{} needs at least one member: {MEMBERS}", node.name());
            children.check.structure(node, message);
        }
        let mut members = Vec::new();
        while let Some(child) = children.any() {
            members.extend(read_member_of_terms(children.check, child));
        }
        Some(members)
    })
}

/// The members that a compositor may have.
const MEMBERS: &str = "wsag:All, wsag:ExactlyOne, wsag:OneOrMore, wsag:ServiceDescriptionTerm, wsag:ServiceReference, \
                       wsag:ServiceProperties or wsag:GuaranteeTerm";

/// The four kinds of term.
pub(crate) const TERMS: [&str; 4] = [
    "ServiceDescriptionTerm",
    "ServiceReference",
    "ServiceProperties",
    "GuaranteeTerm",
];

fn read_member_of_terms(check: &mut DocumentCheck, node: Node<'_>) -> Option<TermTree> {
    let local = Some(node.local()).filter(|_| node.namespace() == WSAG);
    let term = match local.unwrap_or_default() {
        "All" => return read_compositor_of_terms(check, node).map(TermTree::All),
        "ExactlyOne" => return read_compositor_of_terms(check, node).map(TermTree::ExactlyOne),
        "OneOrMore" => return read_compositor_of_terms(check, node).map(TermTree::OneOrMore),
        "ServiceDescriptionTerm" => read_description_term(check, node).map(Term::ServiceDescription),
        "ServiceReference" => read_reference_term(check, node).map(Term::ServiceReference),
        "ServiceProperties" => read_properties_term(check, node).map(Term::ServiceProperties),
        "GuaranteeTerm" => GuaranteeTerm::read(check, node).map(Term::Guarantee),
        _ => {
            check.structure(node, format!("{MEMBERS} is expected here"));
            None
        }
    };
    term.map(|term| TermTree::Term(Box::new(term)))
}

/// The names of a term and of its service.
fn read_names_of_term(check: &mut DocumentCheck, node: Node<'_>) -> Option<(String, String)> {
    check.attributes(node, &[(WSAG, "Name"), (WSAG, "ServiceName")]);
    let name = check.required_attribute(node, (WSAG, "Name"), parse_token);
    let service_name = check.required_attribute(node, (WSAG, "ServiceName"), parse_token);
    name.zip(service_name)
}

/// The contents of service descriptions that are known here.
pub const KNOWN_CONTENTS: &str = "jsdl:JobDefinition, arp:AllocationTimeConstraint or bsp:Scheduling";

pub(crate) fn read_description_term(
    check: &mut DocumentCheck,
    node: Node<'_>,
) -> Option<ServiceDescriptionTerm> {
    let names = read_names_of_term(check, node);
    let child = check.children_only(node, |children| children.only(KNOWN_CONTENTS))?;
    let content = if child.is(JSDL, "JobDefinition") {
        Readable::read(check, child).map(|job| ServiceDescription::JobDefinition(Box::new(job)))
    } else if child.is(ARP, "AllocationTimeConstraint") {
        Readable::read(check, child).map(ServiceDescription::AllocationTime)
    } else if child.is(BSP, "Scheduling") {
        Readable::read(check, child).map(|term| ServiceDescription::Scheduling(Box::new(term)))
    } else if is_of_another_language(child) {
        Some(ServiceDescription::Other(Box::new(OtherContent {
            namespace: child.namespace().to_owned(),
            local: child.local().to_owned(),
            source: child.fragment(),
        })))
    } else {
        refuse_unknown_term(check, child, KNOWN_CONTENTS)
    };
    let (name, service_name) = names?;
    Some(ServiceDescriptionTerm {
        name,
        service_name,
        content: content?,
        is_wsag4j: child.is_renamed(),
    })
}

/// Whether an element is of a namespace that the protocol does not use.
fn is_of_another_language(node: Node<'_>) -> bool {
    !node.namespace().is_empty() && ns::usual_prefix(node.namespace()).is_none()
}

fn term_nodes_of_document<'d>(document: &'d Document<'_>) -> Vec<Node<'d>> {
    let first = document.offers().into_iter().next();
    first.map_or_else(Vec::new, term_nodes)
}

/// The terms of an offer, in the order of [`Terms::flatten`].
fn term_nodes(offer: Node<'_>) -> Vec<Node<'_>> {
    offer.child(WSAG, "Terms").map_or_else(Vec::new, term_nodes_below)
}

/// The terms in `wsag:Terms`, in the order of [`Terms::flatten`].
fn term_nodes_below(terms: Node<'_>) -> Vec<Node<'_>> {
    let mut found = Vec::new();
    collect_term_nodes(terms, &mut found);
    found
}

/// The guard bounds the depth of this recursion.
fn collect_term_nodes<'d>(compositor: Node<'d>, found: &mut Vec<Node<'d>>) {
    for node in compositor.children() {
        if TERMS.contains(&node.local()) {
            found.push(node);
        } else {
            collect_term_nodes(node, found);
        }
    }
}

/// The contents of service descriptions in other languages, of an offer, a template or their terms. Rules of the protocol do not
/// look into them.
pub(crate) fn other_contents_of_terms(above: Node<'_>) -> UnchosenTerms {
    let terms = Some(above).filter(|node| node.is(WSAG, "Terms"));
    let terms = terms.or_else(|| above.child(WSAG, "Terms"));
    let descriptions = terms.into_iter().flat_map(term_nodes_below);
    let descriptions = descriptions.filter(|node| node.is(WSAG, "ServiceDescriptionTerm"));
    let contents = descriptions.filter_map(Node::first_child);
    UnchosenTerms::of(contents.filter(|node| is_of_another_language(*node)), 1)
}

pub(crate) fn read_reference_term(check: &mut DocumentCheck, node: Node<'_>) -> Option<ServiceReference> {
    const KNOWN: &str = "wsa:EndpointReference";
    let names = read_names_of_term(check, node);
    let child = check.children_only(node, |children| children.only(KNOWN))?;
    let reference = if child.is(WSA, "EndpointReference") {
        EndpointReference::read(check, child)
    } else {
        refuse_unknown_term(check, child, KNOWN)
    };
    let (name, service_name) = names?;
    Some(ServiceReference {
        name,
        service_name,
        reference: reference?,
    })
}

fn refuse_unknown_term<T>(check: &mut DocumentCheck, node: Node<'_>, known: &str) -> Option<T> {
    let message = format!("not a term that is known here; {known} is expected");
    check.add(ViolationKind::UnknownTerm, node, message);
    None
}

pub(crate) fn read_properties_term(check: &mut DocumentCheck, node: Node<'_>) -> Option<ServiceProperties> {
    let names = read_names_of_term(check, node);
    let variables = check.children_only(node, |children| {
        children.required(WSAG, "VariableSet", read_variables_of_term)
    });
    let (name, service_name) = names?;
    Some(ServiceProperties {
        name,
        service_name,
        variables: variables?,
    })
}

/// `wsag:VariableSet`.
pub(crate) fn read_variables_of_term(check: &mut DocumentCheck, node: Node<'_>) -> Option<Vec<Variable>> {
    check.children(node, |children| {
        Some(children.at_least_one(WSAG, "Variable", Variable::read))
    })
}

fn write_compositor_of_terms(xml: &mut Xml, name: &'static str, members: &[TermTree]) {
    xml.start(name);
    for member in members {
        match member {
            TermTree::All(members) => write_compositor_of_terms(xml, "wsag:All", members),
            TermTree::ExactlyOne(members) => write_compositor_of_terms(xml, "wsag:ExactlyOne", members),
            TermTree::OneOrMore(members) => write_compositor_of_terms(xml, "wsag:OneOrMore", members),
            TermTree::Term(term) => write_term(xml, term),
        }
    }
    xml.end();
}

fn write_term(xml: &mut Xml, term: &Term) {
    let start = |xml: &mut Xml, element, name, service_name| {
        xml.start(element);
        xml.attribute("wsag:Name", name);
        xml.attribute("wsag:ServiceName", service_name);
    };
    match term {
        Term::ServiceDescription(term) => {
            start(xml, "wsag:ServiceDescriptionTerm", &term.name, &term.service_name);
            match &term.content {
                ServiceDescription::JobDefinition(job) => job.put(xml, "jsdl:JobDefinition"),
                ServiceDescription::AllocationTime(window) if term.is_wsag4j => window.write_for_wsag4j(xml),
                ServiceDescription::AllocationTime(window) => window.put(xml, "arp:AllocationTimeConstraint"),
                ServiceDescription::Other(other) => xml.insert(&other.source),
                ServiceDescription::Scheduling(scheduling) => scheduling.put(xml, "bsp:Scheduling"),
            }
            xml.end();
        }
        Term::ServiceReference(term) => {
            start(xml, "wsag:ServiceReference", &term.name, &term.service_name);
            xml.start_with("wsa:EndpointReference", &["wsa"]);
            term.reference.write(xml);
            xml.end();
            xml.end();
        }
        Term::ServiceProperties(term) => {
            start(xml, "wsag:ServiceProperties", &term.name, &term.service_name);
            xml.start("wsag:VariableSet");
            xml.add("wsag:Variable", &term.variables);
            xml.end();
            xml.end();
        }
        Term::Guarantee(term) => xml.add("wsag:GuaranteeTerm", term),
    }
}
