"""The whole loop with the client that openapi-python-client has made of /openapi.json: loop.py ADDRESS KEY."""

import sys
from uuid import UUID

from bespeak_client import AuthenticatedClient
from bespeak_client.api.agreements import create_agreement, get_agreement, list_agreements, terminate_agreement
from bespeak_client.api.discovery import list_applications, list_templates
from bespeak_client.api.negotiations import open_negotiation
from bespeak_client.models import Accepted, AgreementState, NegotiationRequest, NodesType1, OfferType1, Reason

address, key = sys.argv[1:]
client = AuthenticatedClient(base_url=address, token=key, headers={"Accept": "application/json"})


def accept_best(request: NegotiationRequest) -> Accepted:
    negotiated = open_negotiation.sync(client=client, body=request)
    best = next(offer for offer in negotiated.offers if offer.state == "Acceptable")
    return create_agreement.sync(client=client, body=OfferType1(offer=UUID(best.id)))


template = list_templates.sync(client=client)[0]
application = list_applications.sync(client=client).applications[0]
print(f"template {template.id}, application {application.name}: {application.description}")
first = accept_best(
    NegotiationRequest(template=template.id, nodes=NodesType1(min_=1, max_=2), duration_seconds=600, name="python")
)
changed = accept_best(NegotiationRequest(agreement=first.id, nodes=1, duration_seconds=1200))
shown = get_agreement.sync(id=changed.id, client=client)
assert (shown.supersedes, shown.duration_seconds) == (first.id, 1200), shown
assert changed.id in [agreement.id for agreement in list_agreements.sync(client=client).agreements]
ended = terminate_agreement.sync(id=changed.id, client=client, body=Reason(reason="it was a test"))
assert ended.state == AgreementState.TERMINATED, ended
refused = create_agreement.sync(client=client, body=OfferType1(offer=first.id))
assert (refused.status, refused.code) == (404, "NOT_FOUND"), refused
print("loop.py: negotiated, accepted, changed, shown, listed and terminated")
