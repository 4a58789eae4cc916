"""The whole loop with the client that openapi-python-client has made of /openapi.json: loop.py ADDRESS KEY."""

import sys
from pathlib import Path
from uuid import UUID

from bespeak_client import AuthenticatedClient
from bespeak_client.api.agreements import (
    create_agreement,
    get_agreement,
    get_agreement_terms,
    list_agreements,
    terminate_agreement,
)
from bespeak_client.api.discovery import list_applications, list_templates
from bespeak_client.api.negotiations import open_negotiation
from bespeak_client.models import (
    Accepted,
    AgreementState,
    AllTerms,
    ExactlyOneTerm,
    NegotiatedOffer,
    NegotiationRequest,
    NodeRange,
    Reason,
    TimeTerm,
)

address, key = sys.argv[1:]
client = AuthenticatedClient(base_url=address, token=key, headers={"Accept": "application/json"})


def accept_best(request: NegotiationRequest) -> Accepted:
    negotiated = open_negotiation.sync(client=client, body=request)
    best = next(offer for offer in negotiated.offers if offer.state == "Acceptable")
    return create_agreement.sync(client=client, body=NegotiatedOffer(offer=UUID(best.id)))


template = list_templates.sync(client=client)[0]
application = list_applications.sync(client=client).applications[0]
print(f"template {template.id}, application {application.name}: {application.description}")
first = accept_best(
    NegotiationRequest(template=template.id, nodes=NodeRange(min_=1, max_=2), duration_seconds=600, name="python")
)
changed = accept_best(NegotiationRequest(agreement=first.id, nodes=1, duration_seconds=1200))
shown = get_agreement.sync(id=changed.id, client=client)
assert (shown.supersedes, shown.duration_seconds) == (first.id, 1200), shown
assert changed.id in [agreement.id for agreement in list_agreements.sync(client=client).agreements]
ended = terminate_agreement.sync(id=changed.id, client=client, body=Reason(reason="it was a test"))
assert ended.state == AgreementState.TERMINATED, ended
refused = create_agreement.sync(client=client, body=NegotiatedOffer(offer=first.id))
assert (refused.status, refused.code) == (404, "NOT_FOUND"), refused
# Terms that stand in each other: an offer in XML leaves a choice of two times.
before, rest = Path("examples/reserve-nodes.xml").read_text().split('<wsag:ServiceDescriptionTerm wsag:Name="TIME"')
content, after = rest.split("</wsag:ServiceDescriptionTerm>")
time = f'<wsag:ServiceDescriptionTerm wsag:Name="TIME"{content}</wsag:ServiceDescriptionTerm>'
shorter = time.replace("3600", "1800")
choice = f"{before}<wsag:ExactlyOne><wsag:All>{time}</wsag:All>{shorter}</wsag:ExactlyOne>{after}"
made = client.get_httpx_client().post(
    "/agreements", content=choice, headers={"Content-Type": "application/xml", "Accept": "application/json"}
)
assert made.status_code == 201, made.text
terms = get_agreement_terms.sync(id=UUID(made.json()["id"]), client=client).terms
[one] = [term for term in terms if isinstance(term, ExactlyOneTerm)]
every, short = one.terms
assert isinstance(every, AllTerms) and isinstance(short, TimeTerm), one
assert (every.terms[0].duration_seconds, short.duration_seconds) == (3600, 1800), one
print("loop.py: negotiated, accepted, changed, shown, listed and terminated, and read terms in each other")
