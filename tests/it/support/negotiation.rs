//! The messages of a negotiation, made from offers.

use uuid::Uuid;

use super::client::{Answer, Client};
use super::offers::Offer;
use super::xml::texts;

/// A negotiation offer, and its own context.
#[derive(Debug, Clone)]
pub(crate) struct SentOffer {
    /// The request.
    pub(crate) offer: Offer,
    /// Its `OfferId`.
    pub(crate) id: String,
    /// The offer that it answers.
    pub(crate) to: String,
    /// Advisory, Solicited, Acceptable or Rejected.
    pub(crate) state: &'static str,
    /// Items of its negotiation constraints.
    pub(crate) demands: String,
    /// Content of a `bsp:Scheduling`.
    pub(crate) wishes: String,
    /// Parts of its text, and their replacements.
    pub(crate) replaced: Vec<(String, String)>,
}

impl SentOffer {
    /// A first offer that asks for an answer to accept.
    pub(crate) fn solicited(id: &str, offer: Offer) -> Self {
        Self {
            offer,
            id: id.to_owned(),
            to: "advance-reservation".to_owned(),
            state: "Solicited",
            demands: String::new(),
            wishes: String::new(),
            replaced: Vec::new(),
        }
    }

    /// The same with a wish for how it is planned.
    pub(crate) fn wishing(self, wishes: &str) -> Self {
        Self {
            wishes: wishes.to_owned(),
            ..self
        }
    }

    /// The same with other words somewhere.
    pub(crate) fn replacing(mut self, from: &str, to: &str) -> Self {
        self.replaced.push((from.to_owned(), to.to_owned()));
        self
    }

    /// The element.
    pub(crate) fn xml(&self) -> String {
        let mut offer = self.offer.xml();
        for (from, to) in &self.replaced {
            offer = offer.replace(from, to);
        }
        let (_, content) = offer.split_once('>').expect("a root");
        let (content, _) = content.rsplit_once("</wsag:AgreementOffer>").expect("its end");
        let wishes = if self.wishes.is_empty() {
            String::new()
        } else {
            format!(
                "<wsag:ServiceDescriptionTerm wsag:Name=\"SCHEDULING\" wsag:ServiceName=\"COMPUTE\">\
                 <bsp:Scheduling xmlns:bsp=\"urn:bespeak:terms:1\">{}</bsp:Scheduling></wsag:ServiceDescriptionTerm>",
                self.wishes
            )
        };
        let content = content.replacen("<wsag:GuaranteeTerm", &format!("{wishes}<wsag:GuaranteeTerm"), 1);
        format!(
            "<wsag-neg:NegotiationOffer wsag-neg:OfferId=\"{}\" xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\">\
             {content}<wsag-neg:NegotiationOfferContext><wsag-neg:CounterOfferTo>{}</wsag-neg:CounterOfferTo>\
             <wsag-neg:Creator>NegotiationInitiator</wsag-neg:Creator><wsag-neg:State><wsag-neg:{}/></wsag-neg:State>\
             </wsag-neg:NegotiationOfferContext><wsag-neg:NegotiationConstraints>{}</wsag-neg:NegotiationConstraints>\
             </wsag-neg:NegotiationOffer>",
            self.id, self.to, self.state, self.demands
        )
    }
}

/// A message with offers.
pub(crate) fn message(root: &str, offers: &[SentOffer]) -> String {
    let offers: String = offers.iter().map(SentOffer::xml).collect();
    format!(
        "<wsag-neg:{root} xmlns:wsag-neg=\"http://schemas.ogf.org/graap/2009/11/ws-agreement-negotiation\" \
         xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" xmlns:arp=\"http://www.ogf.org/graap/AR/2009/04/\" \
         xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\">{offers}</wsag-neg:{root}>"
    )
}

/// Opens a negotiation that lasts as long as the provider lets it.
pub(crate) async fn open(client: &Client) -> Uuid {
    let input = "<wsag-neg:InitiateNegotiationInput \
         xmlns:wsag-neg=\"http://schemas.ogf.org/graap/2009/11/ws-agreement-negotiation\"><wsag-neg:NegotiationContext>\
         <wsag-neg:NegotiationType><wsag-neg:Negotiation/></wsag-neg:NegotiationType>\
         <wsag-neg:AgreementResponder>NegotiationResponder</wsag-neg:AgreementResponder>\
         </wsag-neg:NegotiationContext></wsag-neg:InitiateNegotiationInput>";
    client.post("/negotiations", input).await.created()
}

/// Sends offers, and cuts the answers apart.
pub(crate) async fn negotiate(client: &Client, negotiation: Uuid, offers: &[SentOffer]) -> Vec<Counter> {
    let path = format!("/negotiations/{negotiation}/offers");
    let answer = client.post(&path, message("NegotiateInput", offers)).await;
    assert_eq!(answer.status.as_u16(), 200, "{answer:?}");
    counters(&answer)
}

/// A counter offer.
#[derive(Debug, Clone)]
pub(crate) struct Counter {
    /// Its `OfferId`.
    pub(crate) id: String,
    /// Its state.
    pub(crate) state: String,
    /// Its element.
    pub(crate) xml: String,
}

impl Counter {
    /// The texts of the elements of a local name in it.
    pub(crate) fn texts(&self, name: &str) -> Vec<&str> {
        texts(&self.xml, name)
    }

    /// The text of the first of them.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.texts(name)
            .first()
            .copied()
            .unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }

    /// The content of the counter offer as an AgreementOffer, and the extension that accepts it.
    pub(crate) fn acceptance(&self) -> String {
        let (_, content) = self.xml.split_once('>').expect("a root");
        let (content, _) = content
            .split_once("<wsag-neg:NegotiationOfferContext>")
            .expect("its context");
        format!(
            "<wsag:CreateAgreementInput xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\" \
             xmlns:wsag-neg=\"http://schemas.ogf.org/graap/2009/11/ws-agreement-negotiation\" \
             xmlns:wsa=\"http://www.w3.org/2005/08/addressing\" xmlns:bsp=\"urn:bespeak:terms:1\">\
             <wsag:AgreementOffer>{content}</wsag:AgreementOffer><wsag-neg:NegotiationExtension>\
             <wsag-neg:NegotiationOfferContext><wsag-neg:CounterOfferTo>{}</wsag-neg:CounterOfferTo>\
             <wsag-neg:Creator>NegotiationResponder</wsag-neg:Creator><wsag-neg:State><wsag-neg:Acceptable/>\
             </wsag-neg:State></wsag-neg:NegotiationOfferContext></wsag-neg:NegotiationExtension>\
             </wsag:CreateAgreementInput>",
            self.id
        )
    }
}

/// The message that accepts a counter offer in place of an agreement, from the one that accepts it.
pub(crate) fn replacing(acceptance: &str, negotiation: Uuid, agreement: Uuid) -> String {
    let addresses = format!(
        "<wsag-neg:RenegotiationExtension><wsag-neg:ResponderNegotiationEPR><wsa:Address>http://localhost/negotiations/\
         {negotiation}</wsa:Address></wsag-neg:ResponderNegotiationEPR><wsag-neg:ResponderAgreementEPR><wsa:Address>\
         http://localhost/agreements/{agreement}</wsa:Address></wsag-neg:ResponderAgreementEPR>"
    );
    acceptance
        .replace("<wsag-neg:NegotiationExtension>", &addresses)
        .replace(
            "</wsag-neg:NegotiationExtension>",
            "</wsag-neg:RenegotiationExtension>",
        )
}

/// The counter offers in an answer or a fault.
pub(crate) fn counters(answer: &Answer) -> Vec<Counter> {
    let pieces = answer.body.split("<wsag-neg:NegotiationCounterOffer").skip(1);
    pieces
        .map(|piece| {
            let (xml, _) = piece
                .split_once("</wsag-neg:NegotiationCounterOffer>")
                .expect("it ends");
            let (_, id) = xml.split_once("OfferId=\"").expect("it has an id");
            let (id, _) = id.split_once('"').expect("which ends");
            let state = ["Advisory", "Acceptable", "Rejected", "Solicited"]
                .into_iter()
                .find(|state| xml.contains(&format!("<wsag-neg:State><wsag-neg:{state}")));
            Counter {
                id: id.to_owned(),
                state: state.unwrap_or_default().to_owned(),
                xml: format!("<x{xml}"),
            }
        })
        .collect()
}
