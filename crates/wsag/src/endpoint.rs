//! Endpoint references of WS-Addressing 1.0. Their addresses are names of things here and are never fetched.

use serde::{Deserialize, Serialize};

use crate::xml::ns::WSA;
use crate::xml::{DocumentCheck, Fragment, Node, Readable, WrittenValue, Xml, check_repeated_element};

/// `wsa:EndpointReferenceType`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EndpointReference {
    /// `wsa:Address`.
    pub address: String,
    /// `wsa:ReferenceParameters`, verbatim: what the endpoint wants to be told again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Fragment>,
    /// `wsa:Metadata` and foreign elements, verbatim and in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rest: Vec<Fragment>,
}

impl EndpointReference {
    /// A reference that is an address and nothing else.
    pub fn new(address: impl Into<String>) -> EndpointReference {
        EndpointReference {
            address: address.into(),
            parameters: None,
            rest: Vec::new(),
        }
    }
}

/// The namespace of WS-Addressing must be declared above it.
impl WrittenValue for EndpointReference {
    fn write(&self, xml: &mut Xml) {
        xml.add("wsa:Address", &self.address);
        xml.insert_all(&self.parameters);
        xml.insert_all(&self.rest);
    }
}

impl Readable for EndpointReference {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<EndpointReference> {
        check.children(node, |children| {
            let address = children.required(WSA, "Address", DocumentCheck::uri);
            let read =
                |check: &mut DocumentCheck, node: Node<'_>| Some(read_endpoint_parameters(check, node));
            let parameters = children.optional(WSA, "ReferenceParameters", read);
            let metadata = children.optional(WSA, "Metadata", read);
            let foreign = children.many(WSA, "*", |check, node| {
                check_repeated_element(check, node);
                Some(node.fragment())
            });
            Some(EndpointReference {
                address: address?,
                parameters,
                rest: metadata.into_iter().chain(foreign).collect(),
            })
        })
    }
}

/// Reads an element with elements of any namespace and nothing else, as it stands.
fn read_endpoint_parameters(check: &mut DocumentCheck, node: Node<'_>) -> Fragment {
    check.children(node, |children| {
        while let Some(child) = children.any() {
            check_repeated_element(children.check, child);
        }
    });
    node.fragment()
}
