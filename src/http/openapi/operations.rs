//! Every operation, as the router has it.

/// An operation.
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    /// Name, type and meaning of the parameters of its query.
    pub(super) query: &'static [(&'static str, &'static str, &'static str)],
    /// Schema of its body.
    pub(super) request: Option<&'static str>,
    /// Schema of its answer with 200, where it has one.
    pub(super) answer: &'static str,
    /// Its other answers where nothing goes wrong: status and schema.
    pub(super) others: &'static [(u16, &'static str)],
    /// Whether it needs no key.
    pub(super) is_open: bool,
}

const fn get(path: &'static str, answer: &'static str, summary: &'static str) -> Operation {
    Operation {
        method: "get",
        path,
        summary,
        query: &[],
        request: None,
        answer,
        others: &[],
        is_open: false,
    }
}

const fn open(mut operation: Operation) -> Operation {
    operation.is_open = true;
    operation
}

const fn asked(
    mut operation: Operation,
    query: &'static [(&'static str, &'static str, &'static str)],
) -> Operation {
    operation.query = query;
    operation
}

const fn post(
    path: &'static str,
    request: Option<&'static str>,
    others: &'static [(u16, &'static str)],
    summary: &'static str,
) -> Operation {
    Operation {
        method: "post",
        path,
        summary,
        query: &[],
        request,
        answer: "",
        others,
        is_open: false,
    }
}

const fn delete(path: &'static str, summary: &'static str) -> Operation {
    Operation {
        method: "delete",
        path,
        summary,
        query: &[],
        request: None,
        answer: "",
        others: &[(204, "")],
        is_open: false,
    }
}

/// All of them, by path.
pub(super) const OPERATIONS: &[Operation] = &[
    get(
        "/templates",
        "Templates",
        "The templates that offers are made from",
    ),
    get("/templates/{id}", "Template", "A template"),
    asked(
        get(
            "/agreements",
            "Agreements",
            "Your agreements, newest first; operators see those of all parties",
        ),
        &[
            ("after", "uuid", "The `next` of the page before"),
            ("limit", "count", "How many at most"),
        ],
    ),
    post(
        "/agreements",
        Some("Offer"),
        &[(201, "Accepted"), (202, "Accepted")],
        "Makes an agreement from an offer, or refuses it with the reason and the possible alternatives",
    ),
    get("/agreements/{id}", "Agreement", "An agreement"),
    get("/agreements/{id}/state", "State", "Its state"),
    get("/agreements/{id}/terms", "Terms", "The terms of its offer"),
    get("/agreements/{id}/context", "Context", "The context of its offer"),
    get(
        "/agreements/{id}/service-terms",
        "ServiceTerms",
        "The state of its service",
    ),
    get(
        "/agreements/{id}/guarantee-terms",
        "GuaranteeTerms",
        "Its guarantees and their states",
    ),
    get("/agreements/{id}/events", "Timeline", "Its timeline"),
    get(
        "/agreements/{id}/files",
        "Files",
        "The files that its job has written",
    ),
    delete(
        "/agreements/{id}/files",
        "Removes the files that its job has written, once it is over",
    ),
    get(
        "/agreements/{id}/files/{name}",
        "bytes",
        "stdout, stderr or a file of its job",
    ),
    post(
        "/agreements/{id}/terminate",
        Some("Reason"),
        &[(200, "Agreement")],
        "Ends it before its time",
    ),
    post(
        "/negotiations",
        Some("NegotiationRequest"),
        &[(201, "Negotiated")],
        "Opens a negotiation with a request for capacity, and answers with offers at once",
    ),
    asked(
        get(
            "/negotiations",
            "Negotiations",
            "Your negotiations, also those that the provider has opened",
        ),
        &[
            ("after", "uuid", "The `next` of the page before"),
            ("limit", "count", "How many at most"),
        ],
    ),
    get("/negotiations/{id}", "Negotiation", "A negotiation"),
    post(
        "/negotiations/{id}/offers",
        Some("OffersInNegotiation"),
        &[(200, "Answers")],
        "Another request for capacity in a negotiation, or a change of an offer in it, answered with \
         offers; a list is answered with the answers to each",
    ),
    post(
        "/negotiations/{id}/advertisements",
        Some("OffersInNegotiation"),
        &[(200, "Offers")],
        "Takes an offer, or a list of offers, without an answer",
    ),
    post(
        "/negotiations/{id}/terminate",
        Some("Reason"),
        &[(200, "Negotiation")],
        "Ends it, and frees its held nodes",
    ),
    get("/offers/{id}", "FoundOffer", "An offer, with its negotiation"),
    asked(
        get(
            "/accounts",
            "Accounts",
            "Your account; operators see all accounts",
        ),
        &[
            ("after", "uuid", "The `next` of the page before"),
            ("limit", "count", "How many entries at most"),
        ],
    ),
    get("/files", "Files", "Your own files, which your jobs may read"),
    get("/files/{name}", "bytes", "A file"),
    Operation {
        method: "put",
        path: "/files/{name}",
        summary: "Stores a file",
        query: &[],
        request: Some("bytes"),
        answer: "",
        others: &[(201, ""), (204, "")],
        is_open: false,
    },
    delete("/files/{name}", "Removes a file that no agreement still needs"),
    asked(
        get(
            "/availability",
            "Availability",
            "The times at which a class of resources has this many nodes free; \
             other parties' agreements are not shown",
        ),
        &[
            ("nodes", "count", "Lowest number of nodes; 1 by default"),
            ("start", "date-time", "Start; now by default"),
            ("end", "date-time", "End; a day later by default"),
            (
                "kind",
                "text",
                "The class: the kind of the resources; any by default",
            ),
        ],
    ),
    asked(
        get(
            "/events",
            "Trail",
            "Everything that has happened, in the order of the audit trail; for operators",
        ),
        &[
            ("after", "integer", "The number of the line before the first"),
            ("limit", "count", "How many at most"),
        ],
    ),
    get(
        "/refusals/{id}",
        "Refused",
        "The reason for a refusal, by the id in the refusal",
    ),
    get(
        "/metrics",
        "text",
        "The metrics, in Prometheus' text format; for operators and monitors",
    ),
    get(
        "/resources",
        "Resources",
        "The resources and their states; for operators",
    ),
    get(
        "/resources/{name}/nodes",
        "NodeList",
        "The states of the nodes of a resource; for operators",
    ),
    Operation {
        method: "put",
        path: "/resources/{name}/nodes/{nodes}",
        summary: "Sets the states of nodes, by their names or numbers, as in n[1-3],n7: agreements on nodes out \
                  of use get another place; for operators",
        query: &[],
        request: Some("NodeSaying"),
        answer: "Repaired",
        others: &[],
        is_open: false,
    },
    open(get("/healthz", "text", "Whether the process lives")),
    open(get("/readyz", "text", "Whether offers can be decided")),
    open(get("/openapi.json", "openapi", "This description")),
];
