//! Endpoint references of WS-Addressing 1.0. Their addresses are names of things here and are never fetched.

use crate::document::{Fragment, Node};
use crate::ns::WSA;
use crate::reader::{Check, Sequence, fragments};
use crate::terms::token;
use crate::writer::Xml;

/// `wsa:EndpointReferenceType`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EndpointReference {
    /// `wsa:Address`.
    pub address: String,
    /// `wsa:ReferenceParameters`, `wsa:Metadata` and foreign elements, verbatim and in order.
    pub rest: Vec<Fragment>,
}

impl EndpointReference {
    /// A reference that is an address and nothing else.
    pub fn new(address: impl Into<String>) -> EndpointReference {
        EndpointReference {
            address: address.into(),
            rest: Vec::new(),
        }
    }

    /// Writes `wsa:EndpointReference`.
    pub(crate) fn write_alone(&self, xml: &mut Xml) {
        xml.start_with("wsa:EndpointReference", &["wsa"]);
        self.write_content(xml);
        xml.end();
    }

    /// Writes the element of this name; the namespace of WS-Addressing must be declared above it.
    pub(crate) fn write(&self, xml: &mut Xml, name: &'static str) {
        xml.start(name);
        self.write_content(xml);
        xml.end();
    }

    fn write_content(&self, xml: &mut Xml) {
        xml.element("wsa:Address", &self.address);
        xml.insert_all(&self.rest);
    }
}

/// Reads an element of the type of endpoint references.
pub(crate) fn read(check: &mut Check, node: Node<'_>) -> Option<EndpointReference> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let address = sequence
        .required(check, WSA, "Address")
        .and_then(|node| check.simple(node, token));
    let mut rest = Vec::new();
    rest.extend(sequence.optional(WSA, "ReferenceParameters"));
    rest.extend(sequence.optional(WSA, "Metadata"));
    rest.extend(sequence.foreign(WSA));
    sequence.end(check);
    Some(EndpointReference {
        address: address?,
        rest: fragments(&rest),
    })
}
