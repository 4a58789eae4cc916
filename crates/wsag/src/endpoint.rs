//! Endpoint references of WS-Addressing 1.0. Their addresses are names of things here and are never fetched.

use crate::xml::datatypes::token;
use crate::xml::document::Node;
use crate::xml::fragment::Fragment;
use crate::xml::ns::WSA;
use crate::xml::reader::{Check, fragments, simple, verbatim};
use crate::xml::writer::Xml;

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

    fn write_content(&self, xml: &mut Xml) {
        xml.element("wsa:Address", &self.address);
        xml.insert_all(&self.rest);
    }
}

/// Writes a reference, if there is one, as the element of this name; the namespace of WS-Addressing must be declared above it.
pub(crate) fn write<'e>(
    xml: &mut Xml,
    name: &'static str,
    reference: impl Into<Option<&'e EndpointReference>>,
) {
    if let Some(reference) = reference.into() {
        xml.start(name);
        reference.write_content(xml);
        xml.end();
    }
}

/// Reads an element of the type of endpoint references.
pub(crate) fn read(check: &mut Check, node: Node<'_>) -> Option<EndpointReference> {
    check.children(node, |children| {
        let address = children.required(WSA, "Address", simple(token));
        let parameters = children.optional(WSA, "ReferenceParameters", verbatim);
        let metadata = children.optional(WSA, "Metadata", verbatim);
        let foreign = fragments(&children.foreign(WSA));
        Some(EndpointReference {
            address: address?,
            rest: parameters.into_iter().chain(metadata).chain(foreign).collect(),
        })
    })
}
