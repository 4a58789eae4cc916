// The whole loop with the types that openapi-typescript has made of /openapi.json: loop.js ADDRESS KEY.

import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const [address, key] = process.argv.slice(2);
const client = createClient<paths, "application/json" | "application/problem+json">({
  baseUrl: address,
  headers: { Accept: "application/json", Authorization: `Bearer ${key}` },
});

/** What was answered, or the error as an exception. */
function answered<T>(answer: { data?: T; error?: unknown }): NonNullable<T> {
  if (!answer.data) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

async function acceptBest(request: components["schemas"]["NegotiationRequest"]) {
  const negotiated = answered(await client.POST("/negotiations", { body: request }));
  const best = negotiated.offers?.find((offer) => offer.state === "Acceptable");
  if (!best) throw new Error(JSON.stringify(negotiated));
  return answered(await client.POST("/agreements", { body: { offer: best.id } }));
}

const [template] = answered(await client.GET("/templates"));
const [application] = answered(await client.GET("/applications")).applications;
console.log(`template ${template?.id}, application ${application?.name}: ${application?.description}`);
const nodes = { min: 1, max: 2 };
const first = await acceptBest({ template: template?.id, nodes, durationSeconds: 600, name: "typescript" });
const changed = await acceptBest({ agreement: first.id, nodes: 1, durationSeconds: 1200 });
const path = { path: { id: changed.id } };
const shown = answered(await client.GET("/agreements/{id}", { params: path }));
if (shown.supersedes !== first.id || shown.durationSeconds !== 1200) throw new Error(JSON.stringify(shown));
const listed = answered(await client.GET("/agreements")).agreements;
if (!listed.some((agreement) => agreement.id === changed.id)) throw new Error(JSON.stringify(listed));
const ended = await client.POST("/agreements/{id}/terminate", { params: path, body: { reason: "it was a test" } });
if (answered(ended).state !== "Terminated") throw new Error(JSON.stringify(ended));
const refused = await client.POST("/agreements", { body: { offer: first.id } });
if (refused.error?.code !== "NOT_FOUND") throw new Error(JSON.stringify(refused));
// Terms that stand in each other: an offer in XML leaves a choice of two times.
const time = /<wsag:ServiceDescriptionTerm wsag:Name="TIME"[^]*?<\/wsag:ServiceDescriptionTerm>/;
const choice = readFileSync("reserve-nodes.xml", "utf8").replace(
  time,
  (term) =>
    `<wsag:ExactlyOne><wsag:All>${term}</wsag:All>${term.replace("3600", "1800")}</wsag:ExactlyOne>`,
);
const made = await fetch(`${address}/agreements`, {
  method: "POST",
  headers: { "Content-Type": "application/xml", Accept: "application/json", Authorization: `Bearer ${key}` },
  body: choice,
});
const { id } = (await made.json()) as { id: string };
const { terms } = answered(await client.GET("/agreements/{id}/terms", { params: { path: { id } } }));
const one = terms.find((term) => term.kind === "exactlyOne");
if (one?.kind !== "exactlyOne") throw new Error(JSON.stringify(terms));
const [every, short] = one.terms;
const long = every?.kind === "all" ? every.terms[0] : undefined;
if (long?.kind !== "time" || long.durationSeconds !== 3600) throw new Error(JSON.stringify(one));
if (short?.kind !== "time" || short.durationSeconds !== 1800) throw new Error(JSON.stringify(one));
console.log("loop.ts: negotiated, accepted, changed, shown, listed and terminated, and read terms in each other");
